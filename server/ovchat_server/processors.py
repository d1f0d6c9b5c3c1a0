"""The processors that servers and Envoy run on, and those left to the engines."""

from __future__ import annotations

import os


def available() -> frozenset[int]:
    """Return the processors that this process may run on."""
    return frozenset(os.sched_getaffinity(0))


def serving(processors: frozenset[int], servers: int, *, engines: bool = True) -> frozenset[int]:
    """Return those that servers and Envoy run on: all but the first, if enough are left.

    OpenVINO binds the thread that steps an engine to the first. What an engine does alone, such
    as choosing tokens, it does there, while the others have nothing to do; and in its parallel
    work they wait for it. On two processors a small model answers half as fast again like this.

    Args:
        processors: All processors.
        servers: The number of servers.
        engines: Whether there are any.
    """
    if not engines:
        return processors
    others = processors - {min(processors)}
    return others if len(others) >= servers else processors
