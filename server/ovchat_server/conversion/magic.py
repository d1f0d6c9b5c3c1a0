"""How a GGUF file begins. Apart from what reads the rest, which takes a while to load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.conversion.errors import ConversionError

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = b"GGUF"


def check_magic(path: Path) -> None:
    """Check that a file begins like a GGUF file.

    Raises:
        ConversionError: It does not, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            beginning = file.read(len(_MAGIC))
    except OSError as error:
        raise ConversionError(f"{path} cannot be read: {error.strerror}") from error
    if beginning != _MAGIC:
        raise ConversionError(f"{path} is not a GGUF file")
