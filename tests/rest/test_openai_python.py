"""OpenAI's SDK for Python must not notice the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import openai
import pytest

from tests.rest.conftest import given_up
from tests.rest.questions import HELLO, LETTER, SUM
from tests.successor import successor_text
from tests.usage import counted

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam


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
    assert counted(final.usage) == counted(whole.usage)
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
        model="successor", messages=LETTER, max_completion_tokens=5, temperature=0
    )
    stream = await async_sdk.chat.completions.create(
        model="successor", messages=LETTER, max_completion_tokens=5, temperature=0, stream=True
    )
    chunks = [chunk async for chunk in stream]

    assert answer.choices[0].message.content == "bcdef"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "bcdef"


@pytest.mark.parametrize("role", ["developer", "system"])
def test_instructions_may_come_from_a_developer(sdk: openai.OpenAI, role: str) -> None:
    messages: list[ChatCompletionMessageParam] = [
        {"role": role, "content": "Your name is Zorb."},  # type: ignore[misc, list-item]
        {"role": "user", "name": "Anna", "content": "What is your name?"},
    ]

    answer = sdk.chat.completions.create(model="demo", messages=messages, temperature=0)

    assert "Zorb" in (answer.choices[0].message.content or "")


def test_content_may_come_in_parts(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.create(
        model="successor",
        messages=[
            {
                "role": "user",
                "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "a"}],
            }
        ],
        max_tokens=3,
        temperature=0,
    )

    assert answer.choices[0].message.content == "bcd"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len("x\na")


def test_models_are_listed_and_found(sdk: openai.OpenAI) -> None:
    assert [model.id for model in sdk.models.list()] == ["demo", "successor"]
    assert sdk.models.retrieve("demo").owned_by == "ovchat"


def test_raw_responses_carry_our_headers(sdk: openai.OpenAI) -> None:
    response = sdk.chat.completions.with_raw_response.create(
        model="successor",
        messages=LETTER,
        max_tokens=2,
        temperature=0,
        extra_body={"sparkle": True},
        extra_headers={"x-request-id": "7"},
    )
    answer = response.parse()

    assert response.headers["x-ignored-parameters"] == "sparkle"
    assert response.headers["x-request-id"] == answer._request_id
    assert answer.choices[0].message.content == "bc"


async def test_closing_a_stream_frees_the_engine(
    async_sdk: openai.AsyncOpenAI, http: httpx.AsyncClient
) -> None:
    async with (
        given_up(http, "successor", 64 * 4000),
        await async_sdk.chat.completions.create(
            model="successor", messages=LETTER, max_tokens=4000, temperature=0, n=64, stream=True
        ) as stream,
    ):
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break


async def test_a_clients_timeout_frees_the_engine(
    async_sdk: openai.AsyncOpenAI, http: httpx.AsyncClient
) -> None:
    async with given_up(http, "successor", 64 * 4000):
        with pytest.raises(openai.APITimeoutError):
            await async_sdk.chat.completions.create(
                model="successor",
                messages=LETTER,
                max_tokens=4000,
                temperature=0,
                n=64,
                timeout=httpx.Timeout(None, read=0.5),
            )
