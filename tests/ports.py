"""Ports for servers that are told on which to listen."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Below those that the kernel gives to outgoing connections (ip_local_port_range): one of them may
# be free when it is chosen, and a client's when the server binds it.
FIRST, SHARE, SHARES = 12_000, 5_000, 4


def unused_port() -> int:
    """Return a loopback port that nobody listens on; other workers choose among other ports.

    It is not returned again: whoever asked for it may not listen yet.
    """
    for port in _ports():
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe,
        ):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError


@functools.cache
def _ports() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST + SHARE * (worker % SHARES)
    # In another order in every run: another may be under way.
    ports = random.SystemRandom().sample(range(first, first + SHARE), SHARE)
    return itertools.cycle(ports)
