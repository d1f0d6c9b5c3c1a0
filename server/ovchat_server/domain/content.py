"""The content of a message: texts and images, in the caller's order."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TypeAlias

from ovchat_server.domain.field_path import FieldPath


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a message, of which nothing was fetched or decoded yet.

    Attributes:
        url: Where it is, or the image itself in a `data:` URL; "" where there is `data`.
        data: Its file, as typed calls may send it; empty where there is a `url`.
        low_detail: Whether to scale it down to fit in 512x512 pixels first, as OpenAI does where
            `detail` is "low".
        field: Its path in the request, for errors.
    """

    url: str = ""
    data: bytes = b""
    low_detail: bool = False
    field: FieldPath = dataclasses.field(default=FieldPath(), compare=False)


# A text, or an image.
ContentPart: TypeAlias = "str | Image"
Content: TypeAlias = tuple[ContentPart, ...]


def text_of(content: Content) -> str:
    """Return the texts of a content, joined with line breaks, as OVMS does."""
    return "\n".join(part for part in content if isinstance(part, str))
