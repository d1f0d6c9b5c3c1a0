"""Keeping the keys of a server as their file has them."""

from __future__ import annotations

import asyncio
import logging
import stat
from typing import TYPE_CHECKING

from ovchat_server.config_file import SettingError
from ovchat_server.keys.key_file import read_keys

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from ovchat_server.domain.identity import KeyRing

# Seconds between two looks at the file: where it is a mount of Kubernetes, or on a network, no
# event tells of its changes.
INTERVAL = 1.0

logger = logging.getLogger(__name__)


async def watch_keys(path: Path, ring: KeyRing, interval: float = INTERVAL) -> None:
    """Replace the keys of `ring` whenever their file changes, until cancelled.

    A file that is wrong changes nothing; the log says what is wrong, once.
    """
    _warn_of_readers(path)
    seen = _version(path)
    # It may have changed since the server read it.
    _reload(path, ring)
    while True:
        await asyncio.sleep(interval)
        if (now := _version(path)) != seen:
            seen = now
            _warn_of_readers(path)
            _reload(path, ring)


def _reload(path: Path, ring: KeyRing) -> None:
    try:
        keys = read_keys(path)
    except SettingError as error:
        # The message is for a person, and says all.
        message = error.format_message()
        logger.error("the API keys stay as they were: %s", message)  # noqa: TRY400
        return
    before, ring.keys = {key.name for key in ring.keys}, keys
    names = {key.name for key in keys}
    if gone := sorted(before - names):
        logger.info("API keys that are no longer valid: %s", ", ".join(gone))
    if new := sorted(names - before):
        logger.info("API keys that are valid from now on: %s", ", ".join(new))


def _warn_of_readers(path: Path) -> None:
    found = _stat(path)
    if found and found.st_mode & stat.S_IROTH:
        logger.warning("every user of this machine can read the API keys in %s: chmod o-r", path)


def _version(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file changes, or another takes its place; None: there is none."""
    found = _stat(path)
    return found and (found.st_ino, found.st_mtime_ns, found.st_size)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
