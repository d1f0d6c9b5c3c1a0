"""Details of tools and `.parse()` through OpenAI's SDK for Python; agents are in agents/."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from tests.rest.questions import PARIS, STORY, SUM, SUNNY, TWO_CITIES, WEATHER

if TYPE_CHECKING:
    import openai


class GetWeather(BaseModel):
    """Get the current weather in a city."""

    city: str


def test_role_id_and_name_come_once_and_choices_in_order(sdk: openai.OpenAI) -> None:
    chunks = list(
        sdk.chat.completions.create(
            model="demo", messages=TWO_CITIES, tools=[WEATHER], temperature=0, n=3, stream=True
        )
    )

    choices = [choice for chunk in chunks for choice in chunk.choices]
    said: Counter[tuple[str, int, int]] = Counter()
    identifiers = []
    for choice in choices:
        said["role", choice.index, 0] += choice.delta.role is not None
        for call in choice.delta.tool_calls or []:
            assert call.function is not None
            said["id", choice.index, call.index] += call.id is not None
            said["name", choice.index, call.index] += call.function.name is not None
            identifiers += [call.id] if call.id else []
    assert [choice.index for choice in choices[:3]] == [0, 1, 2]
    assert all(choice.delta.role == "assistant" for choice in choices[:3])
    assert len(said) == 3 + 3 * 2 * 2
    assert set(said.values()) == {1}
    assert len(set(identifiers)) == 3 * 2


def test_parse_without_a_format_is_an_answer_like_any_other(sdk: openai.OpenAI) -> None:
    parsed = sdk.chat.completions.parse(model="demo", messages=STORY, temperature=0)
    whole = sdk.chat.completions.create(model="demo", messages=STORY, temperature=0)

    assert parsed.choices[0].message.content == whole.choices[0].message.content
    assert parsed.choices[0].message.parsed is None


def test_reasoning_given_back_is_taken(sdk: openai.OpenAI) -> None:
    first = sdk.chat.completions.create(model="demo", messages=SUM, temperature=0).choices[0]
    assert getattr(first.message, "reasoning_content", None)

    second = sdk.chat.completions.create(
        model="demo",
        messages=[
            *SUM,
            first.message.to_dict(),  # type: ignore[list-item]
            {"role": "user", "content": "What is the capital of France?"},
        ],
        temperature=0,
    ).choices[0]

    assert "Paris" in (second.message.content or "")


def test_reasoning_before_a_tools_result_is_part_of_the_prompt(sdk: openai.OpenAI) -> None:
    def prompt_tokens(**fields: str) -> int:
        call = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
        messages = [
            *PARIS,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
                **fields,
            },
            {"role": "tool", "tool_call_id": "call_1", "content": SUNNY},
        ]
        answer = sdk.chat.completions.create(
            model="demo",
            messages=messages,  # type: ignore[arg-type]
            tools=[WEATHER],
            temperature=0,
        )
        assert "21" in (answer.choices[0].message.content or "")
        assert answer.usage is not None
        return answer.usage.prompt_tokens

    assert prompt_tokens(reasoning_content="I look it up.") > prompt_tokens()


@pytest.mark.parametrize("tools", [{"strict": True}, {}], ids=["held to a grammar", "free"])
def test_a_call_that_is_cut_anywhere_leaves_no_markup(
    sdk: openai.OpenAI, tools: dict[str, Any]
) -> None:
    tool: Any = {**WEATHER, "function": {**WEATHER["function"], **tools}}
    whole = sdk.chat.completions.create(model="demo", messages=PARIS, tools=[tool], temperature=0)
    assert whole.choices[0].finish_reason == "tool_calls"
    assert whole.usage

    for most in range(1, whole.usage.completion_tokens):
        cut = sdk.chat.completions.create(
            model="demo", messages=PARIS, tools=[tool], temperature=0, max_tokens=most
        )
        assert cut.choices[0].finish_reason in {"length", "tool_calls"}
        assert "<" not in (cut.choices[0].message.content or "")


def test_an_agent_without_tools_may_say_so(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "demo", "messages": PARIS, "temperature": 0}
    without = sdk.chat.completions.create(**asked)

    given = sdk.chat.completions.create(**asked, tools=[])

    assert given.choices[0].message == without.choices[0].message
    assert given.usage == without.usage


def test_a_call_and_its_result_may_be_given_back_in_the_older_form(sdk: openai.OpenAI) -> None:
    call = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
    older: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "get_weather", "content": SUNNY},
    ]
    newer: list[dict[str, Any]] = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call00001", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "call00001", "content": SUNNY},
    ]
    asked: dict[str, Any] = {
        "model": "demo",
        "functions": [WEATHER["function"]],
        "temperature": 0,
    }

    answers = [
        sdk.chat.completions.create(messages=[*PARIS, *turns], **asked) for turns in (older, newer)
    ]

    assert "21" in (answers[0].choices[0].message.content or "")
    assert answers[0].choices == answers[1].choices


@pytest.mark.parametrize("streamed", [False, True])
def test_who_gives_functions_is_answered_in_the_older_form(
    sdk: openai.OpenAI,
    streamed: bool,  # noqa: FBT001
) -> None:
    asked: dict[str, Any] = {
        "model": "demo",
        "messages": TWO_CITIES,
        "functions": [WEATHER["function"]],
        "temperature": 0,
    }
    called: dict[str, str] = {"name": "", "arguments": ""}
    if streamed:
        choices = [chunk.choices[0] for chunk in sdk.chat.completions.create(**asked, stream=True)]
        assert [choice.delta.role for choice in choices if choice.delta.role] == ["assistant"]
        said = [choice.delta for choice in choices]
        finish = choices[-1].finish_reason
    else:
        [choice] = sdk.chat.completions.create(**asked).choices
        said, finish = [choice.message], choice.finish_reason

    for part in said:
        assert not part.tool_calls
        if part.function_call:
            called["name"] += part.function_call.name or ""
            called["arguments"] += part.function_call.arguments or ""
    # One alone: it has room for no more.
    assert called == {"name": "get_weather", "arguments": '{"city": "Paris"}'}
    assert finish == "function_call"


def test_the_older_loop_comes_to_its_answer(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {
        "model": "demo",
        "functions": [WEATHER["function"]],
        "temperature": 0,
    }
    said = sdk.chat.completions.create(messages=PARIS, **asked).choices[0].message
    assert said.function_call
    turns: list[Any] = [
        *PARIS,
        said,
        {"role": "function", "name": said.function_call.name, "content": SUNNY},
    ]

    [answer] = sdk.chat.completions.create(messages=turns, **asked).choices

    assert "21" in (answer.message.content or "")
    assert answer.message.function_call is None
    assert answer.finish_reason == "stop"
