"""The server's own deadline, and readers that stop reading."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
from typing import TYPE_CHECKING, Any

import grpc
import msgspec
import pytest

from ovchat_server.app import Server
from ovchat_server.domain.models import ModelState
from ovchat_server.rpc import server as rpc_server
from tests.grpc.conftest import Client
from tests.grpc.engines import PAUSE, given_up, until, until_idle, until_idle_in_time
from tests.grpc.requests import go_on, successor
from tests.grpc.test_errors import details
from tests.http2 import PREFACE, SETTINGS, call, frame, message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.settings import ModelSettings, Settings

# More than any machine says in half a second; and if it were not given up, the engine would go on.
LONG = 4000
INITIAL_WINDOW_SIZE = 4


@contextlib.asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Client]:
    server = Server(settings)
    async with (
        server.running(),
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        client = Client(server, channel)
        # Not by watching its health: connections do not live long here.
        engines = server._engines.values()
        await until(lambda: all(engine.status.state is ModelState.READY for engine in engines))
        yield client


@pytest.fixture(scope="module")
async def hasty(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> AsyncIterator[Client]:
    # Room for two: others wait.
    small = msgspec.structs.replace(successor, kv_blocks=256)
    async with serving(make_settings(small, request_timeout=0.5)) as client:
        yield client


async def ended(call: Any) -> tuple[int, grpc.aio.AioRpcError]:
    """How many messages a stream brought before its error."""
    count = 0
    try:
        async for _ in call:
            count += 1
    except grpc.aio.AioRpcError as error:
        return count, error
    pytest.fail("it ended well")


def assert_late(error: grpc.aio.AioRpcError) -> None:
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert details(error) == ("TIMEOUT", [])
    assert "0.5 seconds" in str(error.details())


async def test_an_answer_that_takes_too_long_is_given_up(hasty: Client) -> None:
    async with given_up(hasty, "successor", LONG):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await hasty.chat.CreateChatCompletion(successor("a", LONG))

    assert_late(caught.value)


@pytest.mark.speed
async def test_a_stream_that_takes_too_long_ends_with_what_it_has(hasty: Client) -> None:
    count, error = await ended(hasty.texts.StreamCompletion(go_on("a", n=3, max_tokens=LONG)))

    assert count > 10
    assert_late(error)
    await until_idle_in_time(hasty, "successor")


async def test_the_time_spent_waiting_for_a_place_counts(hasty: Client) -> None:
    calls = [hasty.chat.StreamChatCompletion(successor("a", LONG, n=4)) for _ in range(30)]

    results = await asyncio.gather(*map(ended, calls))

    for _, error in results:
        assert_late(error)
    await until_idle(hasty, "successor")


@pytest.mark.speed
async def test_what_is_done_in_time_is_answered(hasty: Client) -> None:
    completion = await hasty.chat.CreateChatCompletion(successor("a", 20))

    assert completion.usage.completion_tokens == 20


@pytest.mark.speed
async def test_the_callers_own_deadline_may_be_shorter(hasty: Client) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await hasty.chat.CreateChatCompletion(successor("a", LONG), timeout=0.1)

    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "0.5 seconds" not in str(caught.value.details())
    await until_idle_in_time(hasty, "successor")


@contextlib.asynccontextmanager
async def stalled(client: Client) -> AsyncIterator[asyncio.StreamReader]:
    """A connection with a stream whose reader takes a chunk or two, and never more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.server.port)
    window = struct.pack(">HI", INITIAL_WINDOW_SIZE, 500)
    request = go_on("a", max_tokens=LONG).SerializeToString()
    path = b"/ovchat.v1.CompletionService/StreamCompletion"
    writer.write(PREFACE + frame(SETTINGS, 0, 0, window) + call(message(request), path=path))
    yield reader
    writer.close()


async def until_logged(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    while True:
        for record in caplog.records:
            if "StreamCompletion" in str(vars(record)):
                return vars(record)
        await asyncio.sleep(PAUSE)


@pytest.mark.speed
async def test_a_reader_that_stops_reading_is_given_up(
    make_settings: Callable[..., Settings],
    successor: ModelSettings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "ovchat.access")
    settings = make_settings(successor, idle_timeout=0.3)
    async with serving(settings) as client, stalled(client):
        line = await until_logged(caplog)

        assert line["grpc_status"] == "CANCELLED"
        assert 300 <= line["duration_ms"] < 3000
        await until_idle_in_time(client, "successor")


@pytest.mark.speed
async def test_a_stopped_readers_connection_is_closed_some_day(
    make_settings: Callable[..., Settings],
    successor: ModelSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rpc_server, "CONNECTION_AGE", 0.2)
    settings = make_settings(successor, idle_timeout=0.3, request_timeout=0.5)
    async with serving(settings) as client, stalled(client) as reader:
        with contextlib.suppress(ConnectionResetError):
            # All there ever is.
            assert len(await reader.read()) < 3000


@pytest.mark.speed
async def test_a_slow_reader_is_not_a_stopped_one(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    async with serving(make_settings(successor, idle_timeout=0.3)) as client:
        text, call = "", client.texts.StreamCompletion(go_on("a", max_tokens=400))
        async for chunk in call:
            text += "".join(choice.text for choice in chunk.choices)
            # Takes longer than the limit altogether, but goes on.
            await asyncio.sleep(0.002)
    assert len(text) == 400
