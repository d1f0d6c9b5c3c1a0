"""Delays between restarts of what keeps ending."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FIRST_DELAY = 0.25
LONGEST_DELAY = 30.0


class Backoff:
    """Seconds to wait before the next start: doubled every time, back to the first on `reset`."""

    def __init__(self, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """Begin with the shortest delay; `sleep` waits for so many seconds."""
        self.delay = FIRST_DELAY
        self._sleep = sleep

    async def wait(self) -> None:
        """Wait for `delay`; the next time takes twice as long."""
        delay, self.delay = self.delay, min(self.delay * 2, LONGEST_DELAY)
        await self._sleep(delay)

    def reset(self) -> None:
        """Begin anew: the start was a success."""
        self.delay = FIRST_DELAY
