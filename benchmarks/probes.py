"""How long cheap requests take while something else runs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import statistics
import sys
import time
from typing import TYPE_CHECKING

from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.figures import Figures, quantile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

    from benchmarks.load_client import RestClient

INTERVAL = 0.01
# Sends back what it gets, and does nothing else: what is left is the system waking a process.
ECHO = """
import socket, sys
peer = socket.socket(fileno=int(sys.argv[1]))
while data := peer.recv(1):
    peer.send(data)
"""


@contextlib.asynccontextmanager
async def probing(rest: RestClient, channel: grpc.aio.Channel) -> AsyncIterator[Figures]:
    """Probe until the context is left, which fills the figures in.

    The client's own lateness is among them, as no probe can be more exact than it, and so is a
    byte's way to the simplest of processes and back: what passes Envoy takes it twice.
    """
    health = health_pb2_grpc.HealthStub(channel)
    models: list[float] = []
    checks: list[float] = []
    late: list[float] = []
    echoes: list[float] = []
    stopped = asyncio.Event()

    async def echo() -> None:
        await loop.sock_sendall(ours, b"x")
        await loop.sock_recv(ours, 1)

    async def probe() -> None:
        while not stopped.is_set():
            models.append(await rest.get("/v3/models"))
            start = time.perf_counter()
            await health.Check(health_pb2.HealthCheckRequest())
            checks.append(time.perf_counter() - start)
            start = time.perf_counter()
            await echo()
            echoes.append(time.perf_counter() - start)
            start = time.perf_counter()
            await asyncio.sleep(INTERVAL)
            late.append(time.perf_counter() - start - INTERVAL)

    figures: Figures = {}
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    ours.settimeout(0)
    with theirs:
        arguments = (sys.executable, "-c", ECHO, str(theirs.fileno()))
        process = await asyncio.create_subprocess_exec(*arguments, pass_fds=[theirs.fileno()])
    # Not counted: it has to start.
    await echo()
    task = asyncio.create_task(probe())
    try:
        yield figures
    finally:
        stopped.set()
        await task
        ours.close()
        await process.wait()
        named = {
            "GET /v3/models": models,
            "gRPC health": checks,
            "echo of a byte": echoes,
            "client late": late,
        }
        for name, values in named.items():
            figures[f"{name} ms"] = statistics.median(values) * 1000
            figures[f"{name} p99 ms"] = quantile(values, 0.99) * 1000
            figures[f"{name} max ms"] = max(values) * 1000
