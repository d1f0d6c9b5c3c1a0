"""What an operator is told of overload: what is full, at most once a second."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.errors import OverloadedError, UnavailableError
from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.client.admission_queue import AdmissionQueue
from ovchat_server.engine.client.in_flight_requests import InFlightRequests
from ovchat_server.engine.client.overload_log import OverloadLog
from ovchat_server.engine.contract.engine import Caller
from ovchat_server.rpc.stream_limit import StreamLimit
from ovchat_server.telemetry.paced_log import PacedLog

if TYPE_CHECKING:
    from collections.abc import Callable

LOAD = EngineLoad(running_requests=4, used_kv_blocks=60, total_kv_blocks=64)


@pytest.fixture
def log() -> OverloadLog:
    return OverloadLog("demo", lambda: LOAD)


async def test_the_first_refusal_is_told_at_once_and_others_of_its_second_together(
    log: OverloadLog, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(4):
        log.refused(f"{number} requests are waiting")
    engine = "4 run, 60 of 64 KV blocks are taken (kv_blocks)"
    first = f"demo is overloaded: 0 requests are waiting, {engine}; refused: 1"
    assert caplog.messages == [first]

    log.close()

    others = f"demo is overloaded: 3 requests are waiting, {engine}; refused: 3"
    assert caplog.messages == [first, others]


async def test_nothing_is_said_of_a_cache_that_an_engine_does_not_have(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = OverloadLog("minilm", lambda: EngineLoad(running_requests=2))
    log.refused("1 request is waiting")
    log.close()
    assert caplog.messages == ["minilm is overloaded: 1 request is waiting, 2 run; refused: 1"]


async def test_a_second_later_what_came_meanwhile_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    later: list[Callable[[], None]] = []

    def call_later(_: float, callback: Callable[[], None]) -> object:
        later.append(callback)
        return callback

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    log = PacedLog(logging.getLogger("paced"), lambda due: f"{due} more")
    for _ in range(3):
        log.add()
    later.pop()()
    later.pop()()
    # There was a second in which nothing came.
    assert not later
    log.add()

    assert caplog.messages == ["1 more", "2 more", "1 more"]


async def test_a_full_queue_and_a_long_wait_are_told_by_their_options() -> None:
    told: list[str] = []
    ended = asyncio.Event()
    queue = AdmissionQueue[str](1, 0.01, lambda _stream, _error: ended.set(), told.append)
    queue.enter("stream", Caller(), [1])
    with pytest.raises(OverloadedError, match="1 request is waiting already"):
        queue.check(Caller())

    await ended.wait()

    assert told == [
        "1 request is waiting, of at most 1 (max_queue)",
        "a request was not admitted within 0.01 s (max_queue_wait)",
    ]


async def test_without_an_engine_nobody_is_overloaded() -> None:
    told: list[str] = []
    in_flight: InFlightRequests[Any, Any] = InFlightRequests(
        lambda _: None, 0, 1.0, lambda: UnavailableError("It is being loaded."), told.append
    )
    with pytest.raises(OverloadedError):
        in_flight.check_queue(Caller())
    assert not told


@dataclass
class Call:
    """A call on a connection."""

    connection: str

    def peer(self) -> str:
        return self.connection


async def test_a_connection_with_all_its_calls_is_told(caplog: pytest.LogCaptureFixture) -> None:
    limit = StreamLimit(2)
    async with contextlib.AsyncExitStack() as calls:
        for connection in ("ipv4:10.0.0.1:5", "ipv4:10.0.0.2:7"):
            await calls.enter_async_context(limit.count(Call(connection), "/any"))  # type: ignore[arg-type]
        assert not caplog.messages
        await calls.enter_async_context(limit.count(Call("ipv4:10.0.0.2:7"), "/any"))  # type: ignore[arg-type]

    assert caplog.messages == [
        "ipv4:10.0.0.2:7 had 2 calls under way (max_concurrent_streams): further ones wait"
    ]
    assert not limit._calls
