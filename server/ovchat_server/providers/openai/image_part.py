"""Writing images."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.content import Image
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.providers.openai.body import Body

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


def image_part(body: Body, image: Image) -> JsonObject:
    """Return an image as a part of a message's content; one on this server is refused."""
    url = image.url.strip() if image.url else _data_url(image.data)
    # It may be megabytes long.
    if not url[: max(map(len, SCHEMES))].lower().startswith(SCHEMES):
        body.refuse(
            image.field, "must be a data: URL or an https: URL to be seen", "invalid_image_url"
        )
    described: JsonObject = {"url": url}
    if image.low_detail:
        described["detail"] = "low"
    return {"type": "image_url", "image_url": described}


def _data_url(data: bytes) -> str:
    found = (media for beginning, media in BEGINNINGS.items() if data.startswith(beginning))
    encoded = binascii.b2a_base64(data, newline=False).decode()
    return f"data:{next(found, UNKNOWN_TYPE)};base64,{encoded}"
