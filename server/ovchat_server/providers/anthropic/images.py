"""Writing images."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING

from ovchat_server.providers.image_urls import UNKNOWN_TYPE, image_url, media_type

if TYPE_CHECKING:
    from ovchat_server.domain.content import Image
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.providers.body import Body

FORMATS = ("image/png", "image/jpeg", "image/gif", "image/webp")
# Enough to tell the format by, in base64.
BEGINNING = 16


def image_block(body: Body, image: Image) -> JsonObject:
    """Return an image as a block of a message; one that the API cannot take is refused."""
    url = image_url(body, image)
    if image.low_detail:
        body.ignore({str(image.field / "detail"): "low"})
    if url[:5].lower() != "data:":
        return {"type": "image", "source": {"type": "url", "url": url}}
    head, _, data = url.partition(",")
    # What the URL says of it may be wrong, which would be refused.
    media = _format(data) if head.lower().endswith(";base64") else UNKNOWN_TYPE
    if media not in FORMATS:
        complaint = "must be a PNG, JPEG, GIF or WebP file in base64 to be seen"
        body.refuse(image.field, complaint, "invalid_image_format")
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


def _format(data: str) -> str:
    try:
        return media_type(binascii.a2b_base64(data[:BEGINNING]))
    except ValueError:
        return UNKNOWN_TYPE
