"""How many files a process may have open, and for how many connections that leaves room."""

from __future__ import annotations

import contextlib
import logging
import resource
from typing import Final

# As in envoy.yaml.
MAX_CONNECTIONS: Final = 10_000
# Of a process, for all that is no caller's connection: what it loads, logs, probes and listens on.
RESERVE: Final = 256

logger = logging.getLogger(__name__)


def raise_limit() -> None:
    """Raise this process's limit of open files as far as it may; its children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A container may have a hard limit that the kernel does not take.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections(besides: int = 0) -> int:
    """Return how many connections of callers a process has room for.

    Args:
        besides: Files that it needs for other things than every process does.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    # Some are left however low the limit is.
    return min(MAX_CONNECTIONS, max(limit - RESERVE - besides, limit // 4))


def warn_if_few() -> None:
    """Say so if the limit leaves less room than there would be without it."""
    if (few := connections()) < MAX_CONNECTIONS:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        logger.warning(
            "room for %d connections at once: a process may have %d files open here (ulimit -Hn); "
            "%d would be enough for %d",
            few,
            limit,
            MAX_CONNECTIONS + RESERVE,
            MAX_CONNECTIONS,
        )
