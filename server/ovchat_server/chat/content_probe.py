"""What a chat template shows of a message's content, found out by letting it render some."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.json_value import JsonObject, JsonValue

# What a template is given to see what it shows.
PROBE = "You are tried."
IMAGE_PART: JsonObject = {"type": "image"}


@dataclass(frozen=True, slots=True)
class ShownContent:
    """What a template shows of contents.

    Attributes:
        needs_parts: Whether it shows texts only as parts, as some of vision models do.
        image_tag: What it writes for the part of an image; "" if it knows only texts.
    """

    needs_parts: bool = False
    image_tag: str = ""


def text_part(text: str) -> JsonObject:
    """Return a text as the part of a content that templates know."""
    return {"type": "text", "text": text}


def shown_content(show: Callable[[JsonValue], str]) -> ShownContent:
    """Return what a template shows.

    Args:
        show: Renders a user's message of a content; gives "" if the template refuses it.
    """
    text = text_part(PROBE)
    texts = show([text, text])
    if PROBE not in texts:
        return ShownContent()
    # One that knows only texts may write the parts as Python does.
    needs_parts = PROBE not in show(PROBE) and "'text'" not in texts
    # The first image may change more: Llama 3.2's drops its system message.
    one, two = (show([text, *[IMAGE_PART] * images, text]) for images in (1, 2))
    image_tag = _added(one, two)
    is_tag = one and image_tag.strip() and "type" not in image_tag
    return ShownContent(needs_parts, image_tag if is_tag else "")


def _added(before: str, after: str) -> str:
    """Return the one string that was put into a text; "" if more has changed."""
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    start = len(list(alike))
    end = start + len(after) - len(before)
    return after[start:end] if after[end:] == before[start:] else ""
