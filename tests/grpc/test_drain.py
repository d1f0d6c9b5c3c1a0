"""How a server ends: what it tells, whom it lets finish, and how it cuts off the others."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import TYPE_CHECKING, Any

import grpc.aio
import httpx
import pytest
from google.api import httpbody_pb2
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2
from grpc_status import rpc_status

from ovchat.v1 import rest_service_pb2, rest_service_pb2_grpc, tokenizer_service_pb2
from ovchat_server import app
from ovchat_server.app import Server
from ovchat_server.launch import stop_messages
from tests.grpc.conftest import Client
from tests.grpc.engines import held, until_under_way
from tests.grpc.requests import joined
from tests.grpc.requests import successor as ask_successor
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from ovchat_server.settings import ModelSettings, Settings

    End = Callable[[], asyncio.Task[None]]

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
LONG = 4000
SHORT = 200


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls have time enough to say how they ended, however busy the machine is."""
    monkeypatch.setattr(app, "END_TIMEOUT", 120)
    monkeypatch.setattr(app, "FLUSH_TIMEOUT", 120)


@pytest.fixture
def told() -> Iterator[list[str]]:
    """What the operator is told of the stop."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    stop_messages.logger.addHandler(handler)
    stop_messages.logger.setLevel(logging.INFO)
    yield lines
    stop_messages.logger.removeHandler(handler)
    stop_messages.logger.setLevel(logging.NOTSET)


@contextlib.asynccontextmanager
async def ending(settings: Settings) -> AsyncIterator[tuple[Client, End]]:
    """A server that serves, and what makes it end."""
    stack = contextlib.AsyncExitStack()
    server = Server(settings)
    await stack.enter_async_context(server.running())

    def end() -> asyncio.Task[None]:
        return asyncio.create_task(stack.aclose())

    async with (
        stack,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        client = Client(server, channel)
        await client.wait_for_health("SERVING")
        yield client, end


async def until_health_is_gone(client: Client) -> None:
    watch = client.health.Watch(health_pb2.HealthCheckRequest())
    async for update in watch:
        if update.status == NOT_SERVING:
            watch.cancel()
            return


def rest_body(**fields: Any) -> httpbody_pb2.HttpBody:
    messages = [{"role": "user", "content": "a"}]
    body = {"model": "successor", "messages": messages, "temperature": 0, "max_tokens": LONG}
    return httpbody_pb2.HttpBody(
        content_type="application/json", data=json.dumps(body | fields).encode()
    )


def rest_stub(client: Client) -> Any:
    return rest_service_pb2_grpc.RestServiceStub(client.channel)


async def begun(client: Client) -> Any:
    """A stream of which the first chunk has come."""
    chunks = aiter(client.chat.StreamChatCompletion(ask_successor("a", LONG)))
    await anext(chunks)
    return chunks


async def to_the_end(stream: Any) -> None:
    async for _ in stream:
        pass


async def all_of(events: Any) -> bytes:
    return b"".join([body.data async for body in events])


def assert_unavailable(error: grpc.aio.AioRpcError) -> None:
    """A status that says when to come back."""
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    status = rpc_status.from_call(error)
    assert status is not None
    retry = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(retry) for detail in status.details), status
    assert retry.retry_delay.seconds >= 1


async def test_while_it_drains_new_calls_are_refused_and_running_ones_finish(
    make_settings: Callable[..., Settings], successor: ModelSettings, told: list[str]
) -> None:
    async with ending(make_settings(successor, drain_timeout=300)) as (client, end):
        with held(client, "successor"):
            running = client.chat.StreamChatCompletion(ask_successor("a", SHORT))
            await until_under_way(client, "successor", 1)
            stopped = end()
            await until_health_is_gone(client)

            check = await client.health.Check(health_pb2.HealthCheckRequest())
            assert check.status == NOT_SERVING
            calls = [
                client.chat.CreateChatCompletion(ask_successor("a", 5)),
                client.chat.StreamChatCompletion(ask_successor("a", 5)).read(),
                client.tokenizer.Tokenize(
                    tokenizer_service_pb2.TokenizeRequest(model="successor", prompt="a")
                ),
                client.model("successor"),
                rest_stub(client).GetReadiness(rest_service_pb2.RestServiceGetReadinessRequest()),
            ]
            for call in calls:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call
                assert_unavailable(caught.value)
            alive = rest_service_pb2.RestServiceGetLivenessRequest()
            assert b"ok" in (await rest_stub(client).GetLiveness(alive)).data
            assert not stopped.done()
            assert told == [
                "stopping: 1 answer is under way, up to 300 s for it; Ctrl-C again ends it at once"
            ]

        chunks = [chunk async for chunk in running]
        assert joined(chunks) == successor_text("a", SHORT)
        await stopped
        assert len(told) == 1


async def test_metrics_are_there_while_it_drains(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    async with ending(make_settings(successor)) as (client, end):
        with held(client, "successor"):
            running = client.chat.StreamChatCompletion(ask_successor("a", SHORT))
            await until_under_way(client, "successor", 1)
            stopped = end()
            await until_health_is_gone(client)
            async with httpx.AsyncClient(timeout=None) as http:
                answer = await http.get(str(client.server.metrics_url))
            assert 'vllm:num_preemptions_total{model_name="successor"' in answer.text
        await to_the_end(running)
        await stopped


@pytest.mark.usefixtures("patient")
async def test_what_outlives_the_drain_timeout_gets_a_clear_end(
    make_settings: Callable[..., Settings], successor: ModelSettings, told: list[str]
) -> None:
    async with ending(make_settings(successor, drain_timeout=0.1)) as (client, end):
        # It has begun: from then on it ends in its own way.
        events = aiter(rest_stub(client).CreateChatCompletion(rest_body(stream=True)))
        first = await anext(events)
        typed = client.chat.StreamChatCompletion(ask_successor("a", LONG))
        unary = client.chat.CreateChatCompletion(ask_successor("a", LONG))
        whole = rest_stub(client).CreateChatCompletion(rest_body())
        reading = [asyncio.create_task(to_the_end(call)) for call in (typed, whole)]
        reading.append(asyncio.ensure_future(unary))
        read = asyncio.create_task(all_of(events))
        await until_under_way(client, "successor", 4)

        await end()

        waits, cut = told
        assert waits.startswith("stopping: 4 answers are under way, up to 0.1 s for them; ")
        assert cut == "4 answers are cut off: not finished within 0.1 s (--drain-timeout)"
        *_, error, done, rest = (first.data + await read).decode().split("\n\n")
        assert (done, rest) == ("data: [DONE]", "")
        assert json.loads(error.removeprefix("data: "))["error"]["code"] == "service_unavailable"
        for call in reading:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert_unavailable(caught.value)


@pytest.mark.slow
async def test_a_watcher_of_health_does_not_hold_the_end_up(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    async with ending(make_settings(successor, drain_timeout=300)) as (client, end):
        watch = client.health.Watch(health_pb2.HealthCheckRequest())
        await watch.read()

        await end()

        assert (await watch.read()).status == NOT_SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await watch.read()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.slow
async def test_a_reader_that_takes_nothing_does_not_hold_the_end_up(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    async with ending(make_settings(successor, drain_timeout=0.1)) as (client, end):
        streams = [client.chat.StreamChatCompletion(ask_successor("a", LONG)) for _ in range(4)]
        for stream in streams:
            await stream.read()
        await end()
        for stream in streams:
            stream.cancel()


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
async def test_told_twice_it_ends_at_once(
    make_settings: Callable[..., Settings], successor: ModelSettings, told: list[str]
) -> None:
    async with ending(make_settings(successor, drain_timeout=300)) as (client, end):
        running = await begun(client)
        stopped = end()
        await until_health_is_gone(client)

        client.server.stop_now()

        await stopped
        assert told[1:] == ["stopping at once: 1 answer is cut off"]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await to_the_end(running)
        assert_unavailable(caught.value)
