"""Images inside of their URLs (RFC 2397)."""

from __future__ import annotations

import binascii
from urllib.parse import unquote_to_bytes

from ovchat_server.domain.content import ImageError
from ovchat_server.domain.errors import shortened

# What programs say of a file that they do not know.
UNKNOWN_TYPE = "application/octet-stream"
PIECE = 1 << 16
WHITESPACE = b" \t\r\n\f"


def decode(url: str) -> bytes:
    """Return the file in a `data:` URL.

    Whether it is an image its bytes tell. Its media type is often wrong, so that it only counts
    where it says plainly that it is something else.

    Raises:
        ImageError: There is no file in it, or one that is no image.
    """
    head, comma, body = url.partition(",")
    if not comma:
        raise ImageError(
            "is a data: URL without a comma; it must be like data:image/png;base64,...",
            "invalid_image_url",
        )
    words = [word.strip().lower() for word in head.partition(":")[2].split(";")]
    media_type = words[0]
    if "/" in media_type and media_type != UNKNOWN_TYPE and not media_type.startswith("image/"):
        raise ImageError(
            f"is a data: URL of type {shortened(media_type)!r}; "
            "it must be an image, such as image/png or image/jpeg",
            "unsupported_image_media_type",
        )
    try:
        file = _unescaped(body)
        return _from_base64(file) if words[-1] == "base64" else file
    except ValueError as error:
        raise ImageError(
            "is a data: URL whose base64 is wrong; encode the bytes of the file in base64 with the "
            "characters A-Z, a-z, 0-9, + and /",
            "invalid_base64_image",
        ) from error


def _unescaped(text: str) -> bytes:
    """Decode percent-encoding in pieces: it takes a hundred times the memory of what it decodes."""
    file, start = bytearray(), 0
    while start < len(text):
        end = start + PIECE
        # Not within an escape.
        if (escape := text.rfind("%", end - 2, end)) > start:
            end = escape
        file += unquote_to_bytes(text[start:end])
        start = end
    return bytes(file)


def _from_base64(text: bytes) -> bytes:
    """Decode as browsers do: without regard to whitespace, and padded or not."""
    digits = text.translate(None, WHITESPACE).rstrip(b"=")
    return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4), strict_mode=True)
