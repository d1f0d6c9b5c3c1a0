"""What encodes images for a vision model, as the server sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ovchat_server.engine.contract.engine import ANONYMOUS

if TYPE_CHECKING:
    from ovchat_server.engine.contract.engine import Caller, EngineStatus


@dataclass(frozen=True, slots=True, weakref_slot=True)
class EncodedImage:
    """An image as a model reads it. Its file is there for as long as the object is.

    Attributes:
        hash: From 0 to below 2^60: images with the same one are the same to the model.
        length: How many tokens it takes in a prompt, at least 1.
        positions: How many positions it takes there, in some models (Qwen's) fewer than tokens.
        rows: The path of the file with its embeddings.
        size: The size of the file in bytes.
    """

    hash: int
    length: int
    positions: int
    rows: str
    size: int = 0


class ImageEncoder(Protocol):
    """Encodes images, in a process of its own."""

    @property
    def status(self) -> EngineStatus:
        """Return how it is doing now."""
        ...

    @property
    def loaded(self) -> bool:
        """Return whether it has ever been ready."""
        ...

    async def encode(
        self, file: bytes, *, low_detail: bool, caller: Caller = ANONYMOUS
    ) -> EncodedImage:
        """Decode the file of an image and encode it.

        Args:
            file: A PNG, JPEG, WebP, GIF or BMP file.
            low_detail: Whether to scale it down to fit in 512x512 pixels first.
            caller: Who asks.

        Raises:
            ImageError: The file is no image that can be encoded.
            OverloadedError: Too many are waiting already.
            UnavailableError: There is no encoder now.
            InternalError: The encoder failed on the image.
        """
        ...
