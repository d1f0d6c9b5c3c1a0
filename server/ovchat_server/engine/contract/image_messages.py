"""What processes that encode images are sent, and what they send."""

from __future__ import annotations

import msgspec

from ovchat_server.engine.contract.messages import MessageDecoder, Ready, Report, Start
from ovchat_server.engine.contract.spec import EngineSpec

ENCODED = "encoded"
# The file is no image that the model takes.
REJECTED = "rejected"


class ImageSpec(EngineSpec, frozen=True, kw_only=True):
    """A model whose images are encoded.

    Attributes:
        properties: OpenVINO's own.
        files: The folder that the files of encoded images are written to.
    """

    worker: str = "ovchat_server.engine.genai.image_worker:load"
    properties: dict[str, str | int | float | bool] = msgspec.field(default_factory=dict)
    files: str = ""


class ImageRequest(msgspec.Struct, frozen=True):
    """An image to encode.

    Attributes:
        file: As somebody made it.
        low_detail: Whether a small copy will do.
    """

    id: int
    file: bytes
    low_detail: bool = False


class ImageOutput(msgspec.Struct, frozen=True):
    """An encoded image, or why there is none.

    Attributes:
        finish: ENCODED, REJECTED or a failure (engine.contract.messages).
        reason: Of REJECTED a clause for the caller, of a failure for the server's log.
        code: Of REJECTED, see ImageError.
        rows: The path of a file with its rows, which the server deletes. If the request was
            cancelled, the process does.
        length: How many tokens it takes.
        positions: How many positions it takes.
        size: That of the file, in bytes.
    """

    id: int
    finish: str
    reason: str = ""
    code: str = ""
    rows: str = ""
    length: int = 0
    positions: int = 0
    size: int = 0


def image_decoder() -> MessageDecoder[ImageRequest, ImageOutput, None]:
    """Return the decoders of these messages."""
    return MessageDecoder(Start[ImageRequest], Report[ImageOutput], Ready[None])
