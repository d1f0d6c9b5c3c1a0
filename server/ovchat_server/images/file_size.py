"""How large the files of images may be that are not part of a request."""

from __future__ import annotations

from ovchat_server.domain.content import ImageError


def too_large(max_bytes: int) -> ImageError:
    """Return the verdict on a file of more bytes than are read."""
    return ImageError(
        f"is larger than {max_bytes} bytes, the most that is read of an image: "
        "send a smaller image",
        "image_file_too_large",
    )
