"""Reading requests beside those that are being answered."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Request = TypeVar("Request")

# What so many bytes hold may take 60 ms to read, where most of it is a schema.
FEW_BYTES: Final = 1 << 11
# Requests may take seconds. In threads of their own, they keep no chat from being rendered.
THREADS: Final = 2


class Reading:
    """Reads large requests in threads, two at a time; the others go on meanwhile."""

    def __init__(self) -> None:
        """Begin no thread yet."""
        self._threads = ThreadPoolExecutor(THREADS, "read")

    async def request(self, read: Callable[[], Request], size: int) -> Request:
        """What `read` makes of a message or body of `size` bytes; raises what it raises."""
        if size <= FEW_BYTES:
            return read()
        return await asyncio.get_running_loop().run_in_executor(self._threads, read)
