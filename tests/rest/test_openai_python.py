"""OpenAI's SDK for Python must not notice the difference."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import openai
import pytest

from tests.successor import successor_text

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello!"}]
LETTER: list[ChatCompletionMessageParam] = [{"role": "user", "content": "a"}]
SUM: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is 17 + 25?"}]
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def test_answers(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.create(model="demo", messages=HELLO, temperature=0)

    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer._request_id


def test_streams(sdk: openai.OpenAI) -> None:
    stream = sdk.chat.completions.create(
        model="successor", messages=LETTER, max_tokens=40, temperature=0, stream=True
    )

    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == successor_text(
        "a", 40
    )


def test_the_stream_helper_accumulates_the_whole_answer(sdk: openai.OpenAI) -> None:
    whole = sdk.chat.completions.create(model="demo", messages=SUM, temperature=0)

    with sdk.chat.completions.stream(
        model="demo", messages=SUM, temperature=0, stream_options={"include_usage": True}
    ) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()

    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.content == whole.choices[0].message.content
    assert final.choices[0].message.role == "assistant"
    assert final.choices[0].finish_reason == "stop"
    assert final.usage == whole.usage
    reasoning = getattr(final.choices[0].message, "reasoning_content", None)
    assert reasoning
    assert reasoning == getattr(whole.choices[0].message, "reasoning_content", None)


def test_thinking_can_be_turned_off(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.create(
        model="demo",
        messages=SUM,
        temperature=0,
        extra_body={"chat_template_kwargs": {"enable_thinking": False}},
    )

    assert not hasattr(answer.choices[0].message, "reasoning_content")
    assert "42" in (answer.choices[0].message.content or "")


async def test_answers_and_streams_asynchronously(async_sdk: openai.AsyncOpenAI) -> None:
    answer = await async_sdk.chat.completions.create(
        model="successor", messages=LETTER, max_tokens=5, temperature=0
    )
    stream = await async_sdk.chat.completions.create(
        model="successor", messages=LETTER, max_tokens=5, temperature=0, stream=True
    )
    chunks = [chunk async for chunk in stream]

    assert answer.choices[0].message.content == "bcdef"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "bcdef"


def test_an_agent_calls_a_tool_and_answers_from_its_result(sdk: openai.OpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": "What is the weather in Paris?"}
    ]

    first = sdk.chat.completions.create(
        model="demo", messages=messages, tools=[WEATHER], temperature=0
    ).choices[0]
    [call] = first.message.tool_calls or []
    assert call.type == "function"
    assert first.finish_reason == "tool_calls"
    assert first.message.content is None
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Paris"}

    messages += [
        first.message.to_dict(),  # type: ignore[list-item]
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": '{"temperature": 21, "condition": "sunny"}',
        },
    ]
    second = sdk.chat.completions.create(
        model="demo", messages=messages, tools=[WEATHER], temperature=0
    ).choices[0]
    assert "21" in (second.message.content or "")


def test_the_stream_helper_accumulates_tool_calls(sdk: openai.OpenAI) -> None:
    with sdk.chat.completions.stream(
        model="demo",
        messages=[{"role": "user", "content": "What is the weather in Paris?"}],
        tools=[WEATHER],
        temperature=0,
    ) as stream:
        final = stream.get_final_completion()

    [call] = final.choices[0].message.tool_calls or []
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "Paris"}')
    assert final.choices[0].finish_reason == "tool_calls"


def test_models_are_listed_and_found(sdk: openai.OpenAI) -> None:
    assert [model.id for model in sdk.models.list()] == ["demo", "successor"]
    assert sdk.models.retrieve("demo").owned_by == "ovchat"


def test_errors_are_the_sdks_own(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as not_found:
        sdk.chat.completions.create(model="nobody", messages=HELLO)
    with pytest.raises(openai.BadRequestError) as bad_request:
        sdk.chat.completions.create(model="demo", messages=HELLO, n=0)
    with pytest.raises(openai.BadRequestError):
        sdk.chat.completions.create(model="demo", messages=HELLO, temperature=3, stream=True)

    assert not_found.value.code == "model_not_found"
    assert (bad_request.value.param, bad_request.value.type) == ("n", "invalid_request_error")
