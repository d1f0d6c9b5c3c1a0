"""A property that cannot be enforced: the rest of its tool's schema is, and the answer names it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest

from ovchat.v1 import chat_service_pb2_grpc, tool_pb2
from tests.grpc.requests import ask
from tests.json_schemas import validate
from tests.rest.questions import PARIS

if TYPE_CHECKING:
    import httpx

    from tests.rest.conftest import Stack

HEADER = "x-unenforced-schemas"
ENFORCED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "maxLength": 12},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["place", "unit"],
    "additionalProperties": False,
}
PLACE = {"type": "string", "maxLength": 12, "pattern": "^(?<!a)P"}
PARAMETERS = ENFORCED | {"properties": ENFORCED["properties"] | {"place": PLACE}}
PATH = "tools[0].function.parameters/properties/place/pattern"
ASK: dict[str, Any] = {
    "model": "demo",
    "messages": PARIS,
    "temperature": 0,
    "max_tokens": 100,
    "sparkle": True,
}


def tools(parameters: dict[str, Any] = PARAMETERS, **more: Any) -> dict[str, Any]:
    function = {"name": "get_weather", "parameters": parameters, **more}
    return {"tools": [{"type": "function", "function": function}]}


def validated(arguments: str) -> None:
    validate(json.loads(arguments), ENFORCED)


@pytest.mark.parametrize("choice", ["auto", "required"])
async def test_rest_answers_name_it_in_a_header(http: httpx.AsyncClient, choice: str) -> None:
    fields = {**ASK, **tools(), "tool_choice": choice}
    answer = await http.post("/v1/chat/completions", json=fields)

    assert answer.headers[HEADER] == PATH
    assert answer.headers["x-ignored-parameters"] == "sparkle"
    [call] = answer.json()["choices"][0]["message"]["tool_calls"]
    validated(call["function"]["arguments"])

    streamed = await http.post("/v1/chat/completions", json={**fields, "stream": True})
    assert streamed.headers[HEADER] == PATH
    assert streamed.headers["x-ignored-parameters"] == "sparkle"


async def test_nothing_is_named_where_all_is_enforced_or_nothing_called(
    http: httpx.AsyncClient,
) -> None:
    for fields in (tools(ENFORCED), {**tools(), "tool_choice": "none"}):
        answer = await http.post("/v1/chat/completions", json={**ASK, **fields, "max_tokens": 1})
        assert answer.status_code == 200
        assert HEADER not in answer.headers
        assert answer.headers["x-ignored-parameters"] == "sparkle"


async def test_strict_tools_are_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/chat/completions", json={**ASK, **tools(strict=True)})

    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, "tools[0].function.parameters")
    assert "a pattern that uses a lookbehind or flags at /properties/place" in error["message"]
    assert HEADER not in answer.headers


@pytest.mark.parametrize("port", ["grpc_port", "rest_port"])
async def test_typed_answers_name_it_in_a_trailer(stack: Stack, port: str) -> None:
    function = tool_pb2.FunctionDefinition(name="get_weather", parameters=json.dumps(PARAMETERS))
    request = ask(
        str(PARIS[0]["content"]),
        tools=[tool_pb2.Tool(function=function)],
        temperature=0,
        max_tokens=100,
    )
    async with grpc.aio.insecure_channel(f"127.0.0.1:{getattr(stack, port)}") as channel:
        stub = chat_service_pb2_grpc.ChatServiceStub(channel)
        whole = stub.CreateChatCompletion(request, metadata=[("x-request-id", "mine-1")])
        [call] = (await whole).choices[0].message.tool_calls
        stream = stub.StreamChatCompletion(request)
        chunks = [chunk async for chunk in stream]
        plain = ask("Hello!", max_tokens=1, max_ngram_size=2)
        unnamed = stub.CreateChatCompletion(plain)
        await unnamed

        assert chunks
        validated(call.function.arguments)
        trailers = dict(await whole.trailing_metadata())
        assert (trailers[HEADER], trailers["x-request-id"]) == (PATH, "mine-1")
        assert dict(await stream.trailing_metadata())[HEADER] == PATH
        trailers = dict(await unnamed.trailing_metadata())
        assert HEADER not in trailers
        # The demo model does not speculate.
        assert trailers["x-ignored-parameters"] == "max_ngram_size"
