"""Images as URLs."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.content import Image
    from ovchat_server.providers.body import Body

SCHEMES = ("data:", "https:", "http:")
# How the files of each media type begin.
BEGINNINGS = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
    b"BM": "image/bmp",
}
UNKNOWN_TYPE = "application/octet-stream"


def image_url(body: Body, image: Image) -> str:
    """Return where an image is, or a URL that holds it; one on this server is refused."""
    url = image.url.strip() if image.url else _data_url(image.data)
    # It may be megabytes long.
    if not url[: max(map(len, SCHEMES))].lower().startswith(SCHEMES):
        body.refuse(
            image.field, "must be a data: URL or an https: URL to be seen", "invalid_image_url"
        )
    return url


def media_type(beginning: bytes) -> str:
    """Return the media type of a file that begins like this."""
    found = (media for start, media in BEGINNINGS.items() if beginning.startswith(start))
    return next(found, UNKNOWN_TYPE)


def _data_url(data: bytes) -> str:
    encoded = binascii.b2a_base64(data, newline=False).decode()
    return f"data:{media_type(data)};base64,{encoded}"
