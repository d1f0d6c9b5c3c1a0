"""The content of a message: texts and images, in the caller's order."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TypeAlias

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath

# The formats of images, by their media types.
IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp")


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


class ImageError(Exception):
    """An image cannot be read, decoded or encoded, for a reason that is the caller's to mend."""

    def __init__(self, complaint: str, code: str = "invalid_image") -> None:
        """Make the verdict.

        Args:
            complaint: Completes "<field> ...", for the caller.
            code: OpenAI's word for it, one of those that a Response has in `error.code`.
        """
        super().__init__(complaint)
        self.complaint = complaint
        self.code = code

    def about(self, image: Image) -> InvalidRequestError:
        """Return the error of a request that names the image."""
        return InvalidRequestError.about(image.field, f"{self.complaint}.", self.code)
