"""Tools and `.parse()` through OpenAI's SDK for Python."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import openai
from pydantic import BaseModel

from tests.rest.questions import PARIS, STORY, SUM, SUNNY, TWO_CITIES, WEATHER

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam


class GetWeather(BaseModel):
    """Get the current weather in a city."""

    city: str


def test_an_agent_calls_a_tool_and_answers_from_its_result(sdk: openai.OpenAI) -> None:
    first = sdk.chat.completions.create(
        model="demo", messages=PARIS, tools=[WEATHER], temperature=0
    ).choices[0]
    [call] = first.message.tool_calls or []
    assert call.type == "function"
    assert first.finish_reason == "tool_calls"
    assert first.message.content is None
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Paris"}

    messages: list[ChatCompletionMessageParam] = [
        *PARIS,
        first.message.to_dict(),  # type: ignore[list-item]
        {"role": "tool", "tool_call_id": call.id, "content": SUNNY},
    ]
    second = sdk.chat.completions.create(
        model="demo", messages=messages, tools=[WEATHER], temperature=0
    ).choices[0]
    assert "21" in (second.message.content or "")


def test_the_stream_helper_accumulates_tool_calls(sdk: openai.OpenAI) -> None:
    with sdk.chat.completions.stream(
        model="demo", messages=PARIS, tools=[WEATHER], temperature=0
    ) as stream:
        final = stream.get_final_completion()

    [call] = final.choices[0].message.tool_calls or []
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "Paris"}')
    assert final.choices[0].finish_reason == "tool_calls"


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


def test_the_stream_helper_parses_tool_calls_of_every_choice(sdk: openai.OpenAI) -> None:
    with sdk.chat.completions.stream(
        model="demo",
        messages=TWO_CITIES,
        tools=[openai.pydantic_function_tool(GetWeather, name="get_weather")],
        tool_choice="auto",
        temperature=0,
        n=3,
    ) as stream:
        final = stream.get_final_completion()

    cities = [
        [call.function.parsed_arguments for call in choice.message.tool_calls or []]
        for choice in final.choices
    ]
    assert cities == 3 * [[GetWeather(city="Paris"), GetWeather(city="Rome")]]


def test_parse_gives_the_arguments_of_strict_tools_as_models(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.parse(
        model="demo",
        messages=PARIS,
        tools=[openai.pydantic_function_tool(GetWeather, name="get_weather")],
        tool_choice="auto",
        temperature=0,
    )

    [call] = answer.choices[0].message.tool_calls or []
    assert call.function.parsed_arguments == GetWeather(city="Paris")


def test_parse_without_a_format_is_an_answer_like_any_other(sdk: openai.OpenAI) -> None:
    parsed = sdk.chat.completions.parse(model="demo", messages=STORY, temperature=0)
    whole = sdk.chat.completions.create(model="demo", messages=STORY, temperature=0)

    assert parsed.choices[0].message.content == whole.choices[0].message.content
    assert parsed.choices[0].message.parsed is None


def test_a_format_is_parsed_into_a_model_whole_and_streamed(sdk: openai.OpenAI) -> None:
    whole = sdk.chat.completions.parse(
        model="demo", messages=PARIS, response_format=GetWeather, temperature=0
    )
    with sdk.chat.completions.stream(
        model="demo", messages=PARIS, response_format=GetWeather, temperature=0
    ) as stream:
        streamed = stream.get_final_completion()

    assert isinstance(whole.choices[0].message.parsed, GetWeather)
    assert streamed.choices[0].message.parsed == whole.choices[0].message.parsed


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
