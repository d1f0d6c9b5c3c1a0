"""What libraries write in a process of ours, which has no other way to the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

CHUNK = 1 << 14
# Of a line, in bytes.
LONGEST = 1000

logger = logging.getLogger(__name__)


async def log_output(model: str, stream: asyncio.StreamReader) -> None:
    """Log each line that comes, until the process and its children are gone.

    Args:
        model: The id of the model that the process works for.
        stream: What the process writes to standard output and error.
    """
    rest = b""
    while data := await stream.read(CHUNK):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            _log(model, line)
        # A line that never ends must not grow without bound.
        rest = rest[:LONGEST]
    _log(model, rest)


def _log(model: str, line: bytes) -> None:
    if text := line[:LONGEST].decode(errors="replace").strip():
        message = "%s: its engine process wrote: %s"
        logger.warning(message, model, text, extra={"model": model})
