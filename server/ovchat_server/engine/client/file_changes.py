"""Waiting until a folder's files are others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeAlias

INTERVAL = 2.0

Files: TypeAlias = frozenset[tuple[str, int, int]]
"""The name, size and time of each file of a folder."""


def files_of(folder: str) -> Files:
    """Return what tells the files of a folder from others; "" is a folder without files."""
    try:
        stats = {file.name: file.stat() for file in Path(folder).iterdir()} if folder else {}
    except OSError:
        # It is being replaced: the next look is at what came.
        return frozenset()
    return frozenset((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats.items())


async def files_changed(folder: str, since: Files) -> None:
    """Return once a file of a folder was written, came or went since a look at them."""
    while files_of(folder) == since:  # noqa: ASYNC110  network volumes tell nobody
        await asyncio.sleep(INTERVAL)
