"""Waiting until a folder's files are others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

INTERVAL = 2.0


async def files_changed(
    folder: str, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> None:
    """Return once a file of a folder was written, came or went.

    Args:
        folder: Its path; "" for none, of which nothing changes.
        sleep: Waits for so many seconds between two looks.
    """
    # Asked for rather than told of: network volumes tell nobody.
    before = _facts(folder)
    while before == _facts(folder):
        await sleep(INTERVAL)


def _facts(folder: str) -> frozenset[tuple[str, int, int]]:
    try:
        stats = {file.name: file.stat() for file in Path(folder).iterdir()} if folder else {}
    except OSError:
        # It is being replaced: the next look is at what came.
        return frozenset()
    return frozenset((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats.items())
