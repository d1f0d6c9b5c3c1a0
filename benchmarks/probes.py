"""How long cheap requests take while something else runs."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from typing import TYPE_CHECKING

from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.figures import Figures, quantile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

    from benchmarks.load_client import RestClient

INTERVAL = 0.01


@contextlib.asynccontextmanager
async def probing(rest: RestClient, channel: grpc.aio.Channel) -> AsyncIterator[Figures]:
    """Probe until the context is left, which fills the figures in.

    The client's own lateness is among them: no probe can be more exact than it.
    """
    health = health_pb2_grpc.HealthStub(channel)
    models: list[float] = []
    checks: list[float] = []
    late: list[float] = []
    stopped = asyncio.Event()

    async def probe() -> None:
        while not stopped.is_set():
            models.append(await rest.get("/v3/models"))
            start = time.perf_counter()
            await health.Check(health_pb2.HealthCheckRequest())
            checks.append(time.perf_counter() - start)
            start = time.perf_counter()
            await asyncio.sleep(INTERVAL)
            late.append(time.perf_counter() - start - INTERVAL)

    figures: Figures = {}
    task = asyncio.create_task(probe())
    try:
        yield figures
    finally:
        stopped.set()
        await task
        named = {"GET /v3/models": models, "gRPC health": checks, "client late": late}
        for name, values in named.items():
            figures[f"{name} ms"] = statistics.median(values) * 1000
            figures[f"{name} p99 ms"] = quantile(values, 0.99) * 1000
            figures[f"{name} max ms"] = max(values) * 1000
