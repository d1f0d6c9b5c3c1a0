"""How late the event loop is: what it waits for, all requests wait for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ovchat_server.metrics.histogram import Histogram

INTERVAL: Final = 0.25


async def measure_lag(lag: Histogram) -> None:
    """Observe four times a second how late the loop wakes up who sleeps. Never returns."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + INTERVAL
        await asyncio.sleep(INTERVAL)
        lag.observe(max(loop.time() - due, 0.0))
