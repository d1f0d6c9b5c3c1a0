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
        url: Where it is, or the image itself in a `data:` URL.
        field: Its path in the request, for errors.
    """

    url: str
    field: FieldPath = dataclasses.field(default=FieldPath(), compare=False)


# A text, or an image.
ContentPart: TypeAlias = "str | Image"
Content: TypeAlias = tuple[ContentPart, ...]


def text_of(content: Content) -> str:
    """Return the texts of a content, joined with line breaks, as OVMS does."""
    return "\n".join(part for part in content if isinstance(part, str))
