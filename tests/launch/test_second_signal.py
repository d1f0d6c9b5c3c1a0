"""A second signal to `ovchat up`: every call under way is told its end, at once."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING

import grpc.aio
import httpx
import pytest

from ovchat.v1 import chat_service_pb2_grpc
from tests.grpc.requests import successor
from tests.launch.stack import running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.launch.stack import Stack

pytestmark = pytest.mark.timeout(120)

# With two choices each, all that the cache holds at once.
LONG = 4000


async def event_stream(stack: Stack, begun: asyncio.Event) -> list[str]:
    """The last two events."""
    body = {"model": "successor", "messages": [{"role": "user", "content": "a"}], "stream": True}
    events = []
    async with (
        httpx.AsyncClient(base_url=stack.url, timeout=60) as http,
        http.stream(
            "POST", "/v3/chat/completions", json={**body, "max_tokens": LONG, "n": 2}
        ) as answer,
    ):
        async for line in answer.aiter_lines():
            begun.set()
            if line:
                events.append(line)
    return events[-2:]


async def grpc_stream(stack: Stack, begun: asyncio.Event) -> grpc.aio.AioRpcError:
    """The error that it ends with."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{stack.grpc_port}") as channel:
        chat = chat_service_pb2_grpc.ChatServiceStub(channel)
        try:
            async for _ in chat.StreamChatCompletion(successor("a", LONG, n=2)):
                begun.set()
        except grpc.aio.AioRpcError as error:
            return error
    pytest.fail("it came to its own end")


@pytest.mark.parametrize("replicas", [1, 2])
async def test_a_second_signal_gives_calls_under_way_a_clear_end(
    tmp_path: Path, replicas: int
) -> None:
    options = ("--replicas", str(replicas), "--drain-timeout", "300")
    async with running(tmp_path, *options) as stack:
        begun = [asyncio.Event(), asyncio.Event()]
        rest = asyncio.create_task(event_stream(stack, begun[0]))
        typed = asyncio.create_task(grpc_stream(stack, begun[1]))
        await asyncio.gather(*(event.wait() for event in begun))

        stack.process.send_signal(signal.SIGTERM)
        await stack.says("stopping", replicas)
        assert not rest.done()
        assert not typed.done()
        stack.process.send_signal(signal.SIGTERM)

        error, done = await rest
        assert json.loads(error.removeprefix("data: "))["error"]["code"] == "service_unavailable"
        assert done == "data: [DONE]"
        status = await typed
        assert status.code() is grpc.StatusCode.UNAVAILABLE
        # And not gRPC's own word for a connection that broke.
        assert "Try again shortly" in str(status.details()), status.details()
        assert await stack.ends() == 0
        assert "Traceback" not in stack.log.read_text()
