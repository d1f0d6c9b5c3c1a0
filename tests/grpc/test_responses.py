"""ovchat.v1.ResponseService against the demo model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest

from ovchat.v1 import (
    format_pb2,
    message_pb2,
    response_item_pb2,
    response_pb2,
    response_service_pb2,
    response_tool_pb2,
    tool_pb2,
)
from tests.grpc.requests import WEATHER
from tests.grpc.test_errors import details

if TYPE_CHECKING:
    from ovchat.v1 import response_event_pb2
    from tests.grpc.conftest import Client

FRANCE = "What is the capital of France?"
PARIS = "What is the weather in Paris?"
SUM = "What is 17 + 25?"
FUNCTION = response_tool_pb2.ResponseTool(function=WEATHER.function)
SHELL = response_tool_pb2.ResponseTool(
    custom=response_tool_pb2.ResponseCustomTool(name="shell", description="Run a command.")
)


def said(text: str) -> response_item_pb2.ResponseItem:
    return response_item_pb2.ResponseItem(
        message=response_item_pb2.ResponseMessage(
            role=message_pb2.ROLE_USER,
            content=[response_item_pb2.ResponseContentPart(input_text=text)],
        )
    )


def ask(*texts: str, **fields: Any) -> response_pb2.CreateResponseRequest:
    return response_pb2.CreateResponseRequest(
        model="demo", input=map(said, texts), **{"temperature": 0, **fields}
    )


def text_of(response: response_pb2.Response) -> str:
    return "".join(
        part.output_text.text for item in response.output for part in item.message.content
    )


def lasting(response: response_pb2.Response) -> response_pb2.Response:
    """What is the same each time that a request is answered."""
    copy = response_pb2.Response()
    copy.CopyFrom(response)
    for name in ("id", "created_at", "completed_at", "usage"):
        copy.ClearField(name)  # type: ignore[arg-type]
    for item in copy.output:
        inner = getattr(item, item.WhichOneof("item") or "")
        inner.id = ""
        if "call_id" in inner.DESCRIPTOR.fields_by_name:
            inner.call_id = ""
    return copy


async def stream(
    client: Client, request: response_pb2.CreateResponseRequest
) -> list[response_event_pb2.ResponseEvent]:
    return [event async for event in client.responses.StreamResponse(request)]


def joined(events: list[response_event_pb2.ResponseEvent], index: int) -> str:
    """The text of an item, from its deltas."""
    found = [getattr(event, event.WhichOneof("event") or "") for event in events]
    return "".join(
        event.delta
        for event in found
        if "delta" in event.DESCRIPTOR.fields_by_name and event.output_index == index
    )


def content(item: response_item_pb2.ResponseItem) -> str:
    match item.WhichOneof("item"):
        case "function_call":
            return item.function_call.arguments
        case "custom_tool_call":
            return item.custom_tool_call.input
        case "message":
            return item.message.content[0].output_text.text
    reasoning = item.reasoning
    return "".join(
        part.reasoning_text + part.summary_text for part in (*reasoning.summary, *reasoning.content)
    )


WAYS = {
    "text": ask(FRANCE, instructions="Be brief.", metadata={"a": "b"}),
    "cut": ask(FRANCE, max_output_tokens=3),
    "log probabilities": ask(FRANCE, top_logprobs=2),
    "reasoning": ask(SUM),
    "summary": ask(SUM, reasoning=response_pb2.ResponseReasoning(summary="auto")),
    "calls": ask(PARIS, tools=[FUNCTION]),
    "a custom call": ask(
        "Hello!",
        tools=[SHELL, FUNCTION],
        tool_choice=response_tool_pb2.ResponseToolChoice(
            custom=response_tool_pb2.ResponseToolName(name="shell")
        ),
        max_output_tokens=100,
    ),
    "a schema": ask(
        "Who are you?",
        text=response_pb2.ResponseText(
            format=response_pb2.ResponseTextFormat(
                json_schema=format_pb2.JsonSchemaFormat(name="one", schema='{"enum": ["me"]}')
            )
        ),
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_the_events_of_a_stream_build_the_whole(client: Client, way: str) -> None:
    whole = await client.responses.CreateResponse(WAYS[way])
    events = await stream(client, WAYS[way])

    kinds = [event.WhichOneof("event") for event in events]
    assert kinds[:3] == ["created", "in_progress", "output_item_added"]
    assert [event.sequence_number for event in events] == [*range(len(events))]
    ended = getattr(events[-1], "incomplete" if way == "cut" else "completed").response
    assert lasting(ended) == lasting(whole)
    assert [
        event.output_item_done.item for event in events if event.HasField("output_item_done")
    ] == [*ended.output]
    assert [joined(events, index) for index in range(len(ended.output))] == [
        content(item) for item in ended.output
    ]


async def test_a_whole_response(client: Client) -> None:
    response = await client.responses.CreateResponse(WAYS["text"])

    assert response.id.startswith("resp_")
    assert response.model == "demo"
    assert response.status == response_item_pb2.RESPONSE_STATUS_COMPLETED
    assert response.completed_at >= response.created_at > 0
    assert "Paris" in text_of(response)
    assert (response.instructions, response.metadata) == ("Be brief.", {"a": "b"})
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    [message] = [item.message for item in response.output if item.HasField("message")]
    assert message.role == message_pb2.ROLE_ASSISTANT


async def test_a_response_that_is_cut_says_why(client: Client) -> None:
    response = await client.responses.CreateResponse(WAYS["cut"])

    assert response.status == response_item_pb2.RESPONSE_STATUS_INCOMPLETE
    assert response.incomplete_details.reason == (
        response_pb2.RESPONSE_INCOMPLETE_REASON_MAX_OUTPUT_TOKENS
    )


async def test_reasoning_is_an_item_of_its_own(client: Client) -> None:
    thought, answer = (await client.responses.CreateResponse(WAYS["reasoning"])).output
    summed_up, _ = (await client.responses.CreateResponse(WAYS["summary"])).output

    assert answer.HasField("message")
    assert thought.reasoning.content[0].reasoning_text
    assert (
        thought.reasoning.content[0].reasoning_text == summed_up.reasoning.summary[0].summary_text
    )


@pytest.mark.parametrize("kept", [False, True])
async def test_a_call_and_its_output_lead_to_an_answer(client: Client, *, kept: bool) -> None:
    request = ask(PARIS, tools=[FUNCTION], store=kept)
    called = await client.responses.CreateResponse(request)
    [call] = [item.function_call for item in called.output if item.HasField("function_call")]
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Paris"}')

    if kept:
        request.ClearField("input")
        request.previous_response_id = called.id
    else:
        request.input.extend(called.output)
    request.input.add(
        function_call_output=response_item_pb2.ResponseCallOutput(
            call_id=call.call_id,
            output=[
                response_item_pb2.ResponseContentPart(
                    input_text='{"temperature": 18, "condition": "sunny"}'
                )
            ],
        )
    )
    answer = await client.responses.CreateResponse(request)

    assert "18" in text_of(answer)


async def test_a_kept_response_is_got_continued_and_deleted(client: Client) -> None:
    response = await client.responses.CreateResponse(ask("My name is Anna."))
    get = response_service_pb2.GetResponseRequest(id=response.id)

    assert (await client.responses.GetResponse(get)).response == response
    request = ask(FRANCE, previous_response_id=response.id)
    longer = await client.responses.CountInputTokens(request)
    alone = await client.responses.CountInputTokens(ask(FRANCE))
    assert longer.input_tokens > alone.input_tokens
    again = await client.responses.CreateResponse(request)
    assert again.previous_response_id == response.id
    assert again.usage.input_tokens == longer.input_tokens

    await client.responses.DeleteResponse(
        response_service_pb2.DeleteResponseRequest(id=response.id)
    )
    for call in (client.responses.GetResponse(get), client.responses.CreateResponse(request)):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def with_input(**item: Any) -> response_pb2.CreateResponseRequest:
    return response_pb2.CreateResponseRequest(
        model="demo", input=[response_item_pb2.ResponseItem(**item)]
    )


def held_to(pattern: str) -> response_tool_pb2.ResponseTool:
    return response_tool_pb2.ResponseTool(
        custom=response_tool_pb2.ResponseCustomTool(
            name="shell",
            format=response_tool_pb2.ResponseToolFormat(
                grammar=response_tool_pb2.ResponseToolGrammar(
                    syntax=response_tool_pb2.RESPONSE_GRAMMAR_SYNTAX_REGEX, definition=pattern
                )
            ),
        )
    )


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (response_pb2.CreateResponseRequest(model="demo"), "input"),
        (ask("Hi", top_p=2), "top_p"),
        (ask("Hi", max_output_tokens=0), "max_output_tokens"),
        (ask("Hi", include=["everything"]), "include[0]"),
        (with_input(), "input[0]"),
        (with_input(message=response_item_pb2.ResponseMessage()), "input[0].message.role"),
        (
            with_input(function_call=response_item_pb2.ResponseFunctionCall(call_id="a")),
            "input[0].function_call.name",
        ),
        (
            ask("Hi", tools=[SHELL, response_tool_pb2.ResponseTool(function={"name": "a b"})]),
            "tools[1].function.name",
        ),
        (ask("Hi", tools=[held_to("(")]), "tools[0].custom.format.grammar.definition"),
        (
            ask("Hi", tools=[SHELL], tool_choice={"function": {"name": "none"}}),
            "tool_choice.function.name",
        ),
        (
            ask("Hi", text={"format": {"json_schema": {"name": "a", "schema": "["}}}),
            "text.format.json_schema.schema",
        ),
        (
            with_input(
                message={
                    "role": "ROLE_USER",
                    "content": [{"image": {"data": b"GIF", "mime_type": "image/gif"}}],
                }
            ),
            "input[0].message.content[0].image",
        ),
    ],
)
async def test_a_fault_is_named_by_the_contracts_path(
    client: Client, request_: response_pb2.CreateResponseRequest, field: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.responses.CreateResponse(request_)

    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    _, fields = details(caught.value)
    assert field in fields, caught.value.details()


async def test_a_mode_forces_a_call(client: Client) -> None:
    mode = response_tool_pb2.ResponseToolChoice(mode=tool_pb2.TOOL_CHOICE_MODE_REQUIRED)
    response = await client.responses.CreateResponse(
        ask("Hello!", tools=[FUNCTION], tool_choice=mode)
    )

    assert any(item.HasField("function_call") for item in response.output)
