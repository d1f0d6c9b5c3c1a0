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
from tests.launch.stack import running, send

if TYPE_CHECKING:
    from pathlib import Path

    from tests.launch.stack import Stack

pytestmark = pytest.mark.slow

# All at once, even where all come to one engine.
LONG = 4000
STREAMS = 5
KV_BLOCKS = 2048


async def event_stream(stack: Stack, begun: asyncio.Event) -> list[str]:
    """The last two events."""
    body = {"model": "successor", "messages": [{"role": "user", "content": "a"}], "stream": True}
    events = []
    async with (
        httpx.AsyncClient(base_url=stack.url, timeout=None) as http,
        http.stream("POST", "/v3/chat/completions", json={**body, "max_tokens": LONG}) as answer,
    ):
        async for line in answer.aiter_lines():
            begun.set()
            if line:
                events.append(line)
    return events[-2:]


async def grpc_stream(stack: Stack, begun: asyncio.Event) -> grpc.aio.AioRpcError | None:
    """The error that it ends with, unless it comes to its own end."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{stack.grpc_port}") as channel:
        chat = chat_service_pb2_grpc.ChatServiceStub(channel)
        try:
            async for _ in chat.StreamChatCompletion(successor("a", LONG)):
                begun.set()
        except grpc.aio.AioRpcError as error:
            return error
    return None


@pytest.mark.parametrize("replicas", [1, 2])
async def test_a_second_signal_gives_calls_under_way_a_clear_end(
    tmp_path: Path, replicas: int
) -> None:
    options = ("--replicas", str(replicas), "--drain-timeout", "300", "--log-level", "debug")
    async with running(tmp_path, *options, kv_blocks=KV_BLOCKS) as stack:
        begun = [asyncio.Event() for _ in range(2 * STREAMS)]
        rest = [asyncio.create_task(event_stream(stack, event)) for event in begun[:STREAMS]]
        typed = [asyncio.create_task(grpc_stream(stack, event)) for event in begun[STREAMS:]]
        await asyncio.gather(*(event.wait() for event in begun))
        # None comes to its own end before.
        engines = stack.processes("engine")
        for engine in engines:
            send(engine, signal.SIGSTOP)

        stack.process.send_signal(signal.SIGTERM)
        # Of several servers, too: by each for itself, and for all.
        speakers = replicas + (replicas > 1)
        await stack.says("stopping", speakers)
        stack.process.send_signal(signal.SIGTERM)
        await stack.says("stopping at once", speakers)
        await stack.says(f"stopping: {2 * STREAMS} answers are under way, up to 300 s for them")
        await stack.says(f"stopping at once: {2 * STREAMS} answers are cut off")
        for engine in engines:
            send(engine, signal.SIGCONT)

        events = await asyncio.gather(*rest)
        assert {done for _, done in events} == {"data: [DONE]"}
        last = [json.loads(event.removeprefix("data: ")) for event, _ in events]
        cut = [chunk["error"]["code"] for chunk in last if "error" in chunk]
        assert {*cut} <= {"service_unavailable"}
        statuses = [status for status in await asyncio.gather(*typed) if status]
        assert {status.code() for status in statuses} <= {grpc.StatusCode.UNAVAILABLE}
        # And not gRPC's own word for a connection that broke.
        assert all("Try again shortly" in str(status.details()) for status in statuses)
        assert (len(cut), len(statuses)) == (STREAMS, STREAMS)
        assert await stack.ends() == 0
        assert "Traceback" not in stack.log.read_text()
