"""Requests that take long to read hold up nobody else."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
from google.api import httpbody_pb2

from ovchat.v1 import model_service_pb2, rest_service_pb2_grpc, tool_pb2
from ovchat_server.grammar.cache import GrammarCache
from ovchat_server.serving.codec_threads import MAX_BYTES_IN_PLACE, CodecThreads
from tests.grpc.requests import WEATHER, ask, successor, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.json_value import JsonValue
    from tests.grpc.conftest import Client

# The numbers of each are a grammar of their own: together they take more than a second.
FIELDS = {f"f{number}": {"type": "integer", "minimum": number} for number in range(40)}
SCHEMA = {"type": "object", "properties": FIELDS, "required": [*FIELDS]}
TOOLS = [
    {"name": f"f{number}", "parameters": {**SCHEMA, "additionalProperties": False}, "strict": True}
    for number in range(128)
]


def over_grpc(client: Client) -> Any:
    functions = [
        tool_pb2.FunctionDefinition(**tool | {"parameters": json.dumps(tool["parameters"])})
        for tool in TOOLS
    ]
    tools = [tool_pb2.Tool(function=function) for function in functions]
    return client.chat.CreateChatCompletion(ask("Hi", tools=tools, truncate_prompt_tokens=8))


async def over_rest(client: Client) -> None:
    fields = {
        "model": "demo",
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"type": "function", "function": tool} for tool in TOOLS],
        "truncate_prompt_tokens": 8,
    }
    body = httpbody_pb2.HttpBody(data=json.dumps(fields).encode())
    await rest_service_pb2_grpc.RestServiceStub(client.channel).CreateChatCompletion(body).read()


@pytest.mark.parametrize("door", ["grpc", "rest"])
async def test_others_are_answered_while_a_large_request_is_read(
    client: Client, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    go_on, begun, read = threading.Event(), asyncio.Event(), CodecThreads.read
    loop, its_thread, threads = asyncio.get_running_loop(), threading.get_ident(), set()

    async def slow(self: CodecThreads, read_request: Callable[[], Any], size: int) -> Any:
        def reading() -> Any:
            if size > MAX_BYTES_IN_PLACE:
                threads.add(threading.get_ident())
                loop.call_soon_threadsafe(begun.set)
                if its_thread not in threads:
                    go_on.wait()
            return read_request()

        return await read(self, reading, size)

    monkeypatch.setattr(CodecThreads, "read", slow)
    long = "a" * 3000
    if door == "grpc":
        call = asyncio.ensure_future(client.chat.CreateChatCompletion(successor(long, 1)))
    else:
        body = {
            "model": "successor",
            "messages": [{"role": "user", "content": long}],
            "max_tokens": 1,
        }
        data = httpbody_pb2.HttpBody(data=json.dumps(body).encode())
        stub = rest_service_pb2_grpc.RestServiceStub(client.channel)
        call = asyncio.ensure_future(stub.CreateChatCompletion(data).read())
    try:
        await begun.wait()
        assert its_thread not in threads
        listed = await client.models.ListModels(model_service_pb2.ListModelsRequest())
        answer = await client.chat.CreateChatCompletion(successor("a", 3))
        assert not call.done()
    finally:
        go_on.set()
    assert len(listed.models) == 2
    assert text_of(answer) == "bcd"
    await call


@pytest.mark.speed
@pytest.mark.parametrize("large", [over_grpc, over_rest])
async def test_others_are_answered_soon_while_a_large_request_is_read(
    client: Client, large: Any
) -> None:
    async def begin() -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError, match="tool_choice cannot be enforced") as caught:
            await large(client)
        return caught.value.code()

    reading = asyncio.create_task(begin())
    answered = 0
    while not reading.done():
        await client.models.ListModels(model_service_pb2.ListModelsRequest())
        answered += 1

    assert await reading is grpc.StatusCode.INVALID_ARGUMENT
    # Else one before it arrives, and one behind it.
    assert answered > 10


@pytest.mark.parametrize("forced", [False, True])
async def test_grammars_of_tools_are_written_in_a_thread(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    forced: bool,  # noqa: FBT001
) -> None:
    threads = []

    written = GrammarCache.grammar

    def recorded(self: GrammarCache, write: Any, schema: JsonValue) -> str:
        threads.append(threading.get_ident())
        return written(self, write, schema)

    monkeypatch.setattr(GrammarCache, "grammar", recorded)
    choice = {"tool_choice": tool_pb2.ToolChoice(function_name="get_weather")}
    await client.chat.CreateChatCompletion(
        ask("Hi", max_tokens=1, tools=[WEATHER], **(choice if forced else {}))
    )
    assert threads
    assert threading.get_ident() not in threads
