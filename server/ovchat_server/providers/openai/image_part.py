"""Writing images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.providers.image_urls import image_url

if TYPE_CHECKING:
    from ovchat_server.domain.content import Image
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.providers.body import Body


def image_part(body: Body, image: Image) -> JsonObject:
    """Return an image as a part of a message's content; one on this server is refused."""
    described: JsonObject = {"url": image_url(body, image)}
    if image.low_detail:
        described["detail"] = "low"
    return {"type": "image_url", "image_url": described}
