"""Ports for servers that are told on which to listen."""

from __future__ import annotations

import contextlib
import os
import random
import socket

# Below those that the kernel gives to outgoing connections (ip_local_port_range): one of them may
# be free when it is chosen, and a client's when the server binds it.
FIRST, SHARE, SHARES = 12_000, 5_000, 4


def unused_port() -> int:
    """Return a loopback port that nobody listens on; other workers choose among other ports."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST + SHARE * (worker % SHARES)
    while True:
        port = random.SystemRandom().randrange(first, first + SHARE)
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe,
        ):
            probe.bind(("127.0.0.1", port))
            return port
