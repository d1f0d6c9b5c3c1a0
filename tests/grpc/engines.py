"""Engines of a server in this process: held, or waited for.

None of it has a bound of its own: a test's is for hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from ovchat_server.domain.models import EngineLoad
    from ovchat_server.engine.client.generation_engine import SupervisedGenerationEngine
    from ovchat_server.engine.contract.generation_messages import SequenceOutput
    from ovchat_server.engine.contract.messages import Report
    from tests.grpc.conftest import Client

# Seconds between two looks: the engine needs the processor more.
PAUSE = 0.01


def engine_of(client: Client, model: str) -> SupervisedGenerationEngine:
    engine: SupervisedGenerationEngine = client.server._engines[model]  # type: ignore[assignment]
    return engine


def load_of(client: Client, model: str) -> EngineLoad:
    """What the engine reported last."""
    load = engine_of(client, model).status.load
    assert load is not None
    return load


async def until(wanted: Callable[[], bool]) -> None:
    while not wanted():  # noqa: ASYNC110  what another process does has no event
        await asyncio.sleep(PAUSE)


async def until_running(client: Client, model: str, count: int) -> None:
    """Until so many sequences are in the engine's batch."""
    await until(lambda: load_of(client, model).running_requests >= count)


async def until_under_way(client: Client, model: str, count: int) -> None:
    """Until the server has passed on so many requests, each choice being one, and lost no other."""
    in_flight = engine_of(client, model).supervisor.in_flight
    await until(lambda: len(in_flight._in_flight) == count)


async def until_idle(client: Client, model: str) -> None:
    """Until no request of a model holds anything."""
    engine = engine_of(client, model)

    def idle() -> bool:
        load = engine.status.load
        return (
            not engine.supervisor.in_flight._in_flight
            and load is not None
            and load.running_requests == load.waiting_requests == load.used_kv_blocks == 0
        )

    await until(idle)


async def until_idle_in_time(client: Client, model: str) -> None:
    """As promised; for tests that are marked `speed`."""
    async with asyncio.timeout(1):
        await until_idle(client, model)


@contextlib.asynccontextmanager
async def given_up(client: Client, model: str, tokens: int) -> AsyncIterator[None]:
    """What is asked here leaves nothing in the engine, long before it has so many tokens."""
    await until_idle(client, model)
    before = load_of(client, model).generated_tokens
    yield
    await until_idle(client, model)
    assert load_of(client, model).generated_tokens - before < tokens


@contextlib.contextmanager
def held(client: Client, model: str) -> Iterator[None]:
    """The engine does nothing meanwhile. Then it finds at once all that was sent."""
    connection = engine_of(client, model).supervisor._connection
    assert connection is not None
    pid = connection._process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def reported(client: Client, model: str) -> Iterator[list[EngineLoad]]:
    """Every load that the engine reports meanwhile."""
    in_flight = engine_of(client, model).supervisor.in_flight
    deliver, loads = in_flight.deliver, []

    def noted(report: Report[SequenceOutput]) -> None:
        loads.append(report.load)
        deliver(report)

    in_flight.deliver = noted  # type: ignore[method-assign]
    try:
        yield loads
    finally:
        in_flight.deliver = deliver  # type: ignore[method-assign]
