"""Slow regular expressions of one caller cost no other its schemas."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest

from ovchat.v1 import chat_service_pb2_grpc, tool_pb2
from tests.attacks.callers import ATTACKER, Callers, Seconds, calling, timed
from tests.grpc.requests import ask
from tests.json_schemas import validate
from tests.rest.questions import PARIS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = [pytest.mark.slow]

SLOW = 70
ASKED = 3
HEADER = "x-unenforced-schemas"


@pytest.fixture(scope="module")
async def callers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Callers]:
    async with calling(tmp_path_factory.mktemp("slow-grammars")) as callers:
        yield callers


def slow_patterns() -> Iterator[str]:
    """Each takes longer than a grammar may."""
    for number in count():
        yield "[a-z]{1,500}-" * 50 + str(number)


def tools(name: str) -> dict[str, Any]:
    """One whose schema nobody has asked for."""
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "maxLength": 9}},
        "required": [name],
        "additionalProperties": False,
    }
    return {"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}]}


async def asked(callers: Callers, kind: str, number: int, **fields: Any) -> Any:
    """An answer to a chat of the harmed one with a new schema."""
    body = {"model": "demo", "messages": PARIS, "max_tokens": 60, "temperature": 0, **fields}
    name = f"{kind}{number}"
    if kind == "auto":
        body |= tools(name)
    else:
        schema = tools(name)["tools"][0]["function"]["parameters"]
        form = {"name": name, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    response = await callers.harmed.post("/v3/chat/completions", json=body)
    assert response.status_code == 200, response.text
    assert HEADER not in response.headers
    if kind == "forced":
        validate(json.loads(response.json()["choices"][0]["message"]["content"]), schema)


async def seconds(callers: Callers, kind: str, begin: int) -> Seconds:
    return Seconds(
        [await timed(lambda n=n: asked(callers, kind, n)) for n in range(begin, begin + ASKED)]
    )


async def test_the_schemas_of_others_are_checked_in_turn(callers: Callers) -> None:
    await seconds(callers, "forced", 0)
    alone = {kind: await seconds(callers, kind, 10) for kind in ("forced", "auto")}
    patterns = slow_patterns()

    async def attack() -> int:
        body = {"model": "demo", "messages": PARIS, "guided_regex": next(patterns)}
        response = await callers.attacker.post("/v3/chat/completions", json=body)
        return response.status_code

    attacks = [asyncio.create_task(attack()) for _ in range(SLOW)]
    try:
        # Those beyond its quota come back at once.
        await asyncio.wait(attacks, return_when=asyncio.FIRST_COMPLETED)
        beside = {kind: await seconds(callers, kind, 20) for kind in ("forced", "auto")}
        statuses = Counter(task.result() for task in attacks if task.done())
    finally:
        for task in attacks:
            task.cancel()
        await asyncio.wait(attacks)
    for kind, took in alone.items():
        print(f"{kind}: alone: {took}\n{kind}: beside {SLOW} slow ones: {beside[kind]}")
    print(f"the attacker's: {statuses}")
    assert statuses[429] == SLOW - 64
    # Most of the attack still waits: the others did not wait for it.
    assert statuses.total() < SLOW // 2


@pytest.mark.parametrize("stream", [False, True])
async def test_the_attackers_own_calls_are_refused_and_lose_no_schema(
    callers: Callers,
    stream: bool,  # noqa: FBT001
) -> None:
    patterns = slow_patterns()
    body = {"model": "demo", "messages": PARIS}
    attacks = [
        asyncio.create_task(
            callers.attacker.post(
                "/v3/chat/completions", json={**body, "guided_regex": next(patterns) + str(stream)}
            )
        )
        for _ in range(SLOW)
    ]
    try:
        await asyncio.wait(attacks, return_when=asyncio.FIRST_COMPLETED)
        response = await callers.attacker.post(
            "/v3/chat/completions", json={**body, **tools(f"own{stream}"), "stream": stream}
        )
    finally:
        for task in attacks:
            task.cancel()
        await asyncio.wait(attacks)
    assert response.status_code == 429
    assert "of yours" in response.json()["error"]["message"]


# Each property compiles in time, all of them do not.
TOO_MUCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        f"p{n}": {"type": "string", "pattern": f"^[a-z]{{1,{90 + n}}}-$"} for n in range(100)
    },
    "additionalProperties": False,
}
MESSAGE = {"role": "user", "content": "Hello"}
DOORS: dict[str, tuple[str, dict[str, Any], str]] = {
    "chat": (
        "/v3/chat/completions",
        {
            "messages": [MESSAGE],
            "max_tokens": 1,
            "tools": [{"type": "function", "function": {"name": "f", "parameters": TOO_MUCH}}],
        },
        "tools[0].function.parameters",
    ),
    "responses": (
        "/v3/responses",
        {
            "input": [MESSAGE],
            "max_output_tokens": 16,
            "tools": [{"type": "function", "name": "f", "parameters": TOO_MUCH, "strict": False}],
        },
        "tools[0].parameters",
    ),
    "messages": (
        "/v3/messages",
        {
            "messages": [MESSAGE],
            "max_tokens": 1,
            "tools": [{"name": "f", "input_schema": TOO_MUCH}],
        },
        "tools[0].input_schema",
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("door", DOORS)
async def test_every_answer_says_that_its_schemas_were_not_compiled_in_time(
    callers: Callers,
    door: str,
    stream: bool,  # noqa: FBT001
) -> None:
    path, fields, named = DOORS[door]
    body = {"model": "demo", "stream": stream, **fields}
    response = await callers.attacker.post(path, json=body)
    assert response.status_code == 200, response.text
    assert response.headers[HEADER] == named


async def test_typed_answers_say_so_too(callers: Callers) -> None:
    function = tool_pb2.FunctionDefinition(name="f", parameters=json.dumps(TOO_MUCH))
    request = ask("Hello", tools=[tool_pb2.Tool(function=function)], max_tokens=1)
    metadata = [("authorization", f"Bearer {ATTACKER}")]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{callers.stack.grpc_port}") as channel:
        stub = chat_service_pb2_grpc.ChatServiceStub(channel)
        whole = stub.CreateChatCompletion(request, metadata=metadata)
        await whole
        stream = stub.StreamChatCompletion(request, metadata=metadata)
        assert [chunk async for chunk in stream]
        for call in (whole, stream):
            assert dict(await call.trailing_metadata())[HEADER] == "tools[0].function.parameters"
