"""Answers and arguments as Pydantic models, by `.parse()` and `.stream()` of OpenAI's SDK."""

from __future__ import annotations

from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import openai
import pytest
from pydantic import BaseModel, Field

from tests.rest.agents.person import ANNA, WHO, Person
from tests.rest.agents.weather import BOTH_CITIES, BOTH_TOOLS, PARIS

if TYPE_CHECKING:
    from collections.abc import Callable

    from openai.types.chat import ParsedChatCompletion

    Ask = Callable[[openai.OpenAI, dict[str, Any]], ParsedChatCompletion[Any]]


class State(Enum):
    OPEN = "open"
    CLOSED = "closed"


class Item(BaseModel):
    name: str = Field(max_length=20)
    quantity: int = Field(ge=1, le=99)


class Order(BaseModel):
    """An order."""

    customer: str = Field(max_length=20)
    items: list[Item] = Field(min_length=1, max_length=2)
    state: State
    priority: Literal["low", "high"] | None
    gift: bool


class GetWeather(BaseModel):
    """Get the current weather in a city."""

    city: str


class GetTime(BaseModel):
    """Get the local time in a city."""

    city: str


WEATHER = openai.pydantic_function_tool(GetWeather, name="get_weather")
TIME = openai.pydantic_function_tool(GetTime, name="get_time")
NAMED = {"type": "function", "function": {"name": "get_time"}}


def asked(question: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}]
    return {"model": "demo", "messages": messages, "temperature": 0, "max_tokens": 300, **fields}


def parsed(sdk: openai.OpenAI, request: dict[str, Any]) -> ParsedChatCompletion[Any]:
    return sdk.chat.completions.parse(**request)


def streamed(sdk: openai.OpenAI, request: dict[str, Any]) -> ParsedChatCompletion[Any]:
    with sdk.chat.completions.stream(**request) as stream:
        return stream.get_final_completion()


both_ways = pytest.mark.parametrize("ask", [parsed, streamed])


def arguments(choice: Any) -> list[object]:
    return [call.function.parsed_arguments for call in choice.message.tool_calls or []]


@both_ways
def test_an_answer_is_a_model(sdk: openai.OpenAI, ask: Ask) -> None:
    answer = ask(sdk, asked(WHO, response_format=Person, n=2))

    for choice in answer.choices:
        assert choice.message.parsed == ANNA
        assert choice.finish_reason == "stop"


@both_ways
def test_so_it_is_with_models_lists_enums_and_bounds_inside(sdk: openai.OpenAI, ask: Ask) -> None:
    question = "Extract the order as JSON: Anna orders 3 apples."

    [choice] = ask(sdk, asked(question, response_format=Order)).choices

    assert isinstance(choice.message.parsed, Order)
    assert choice.message.parsed.customer == "Anna"


async def test_so_it_is_asynchronously(async_sdk: openai.AsyncOpenAI) -> None:
    request = asked(WHO, response_format=Person)

    whole = await async_sdk.chat.completions.parse(**request)
    async with async_sdk.chat.completions.stream(**request) as stream:
        final = await stream.get_final_completion()

    parsed = whole.choices[0].message.parsed
    assert parsed == final.choices[0].message.parsed == ANNA


def test_the_name_that_it_had_in_beta_does_the_same(sdk: openai.OpenAI) -> None:
    answer = sdk.beta.chat.completions.parse(**asked(WHO, response_format=Person))

    assert answer.choices[0].message.parsed == ANNA


def test_a_stream_shows_the_model_as_it_grows(sdk: openai.OpenAI) -> None:
    with sdk.chat.completions.stream(**asked(WHO, response_format=Person)) as stream:
        events: list[Any] = list(stream)

    growing = [event.parsed for event in events if event.type == "content.delta"]
    [done] = [event.parsed for event in events if event.type == "content.done"]
    assert growing[-1] == ANNA.model_dump()
    names = [part.get("name", "") for part in growing if isinstance(part, dict)]
    assert all(later.startswith(name) for name, later in pairwise(names))
    assert done == ANNA


@both_ways
def test_an_answer_that_was_cut_is_the_sdks_own_error(sdk: openai.OpenAI, ask: Ask) -> None:
    with pytest.raises(openai.LengthFinishReasonError) as caught:
        ask(sdk, asked(WHO, response_format=Person) | {"max_tokens": 5})

    assert caught.value.completion.choices[0].finish_reason == "length"


@both_ways
@pytest.mark.parametrize(
    ("question", "fields", "expected"),
    [
        (PARIS, {}, [GetWeather(city="Paris")]),
        (BOTH_CITIES, {"n": 2}, [GetWeather(city="Paris"), GetWeather(city="Rome")]),
        (BOTH_TOOLS, {}, [GetWeather(city="Paris"), GetTime(city="Rome")]),
        (BOTH_TOOLS, {"tool_choice": "required"}, [GetWeather(city="Paris"), GetTime(city="Rome")]),
        (PARIS, {"tool_choice": NAMED}, [GetTime(city="Paris")]),
        (BOTH_CITIES, {"parallel_tool_calls": False}, [GetWeather(city="Paris")]),
    ],
    ids=["one", "two", "two tools", "required", "named", "one at a time"],
)
def test_the_arguments_of_strict_tools_are_models(
    sdk: openai.OpenAI, ask: Ask, question: str, fields: dict[str, Any], expected: list[object]
) -> None:
    answer = ask(sdk, asked(question, tools=[WEATHER, TIME], **fields))

    for choice in answer.choices:
        assert arguments(choice) == expected
        assert choice.finish_reason == "tool_calls"


@both_ways
def test_so_they_are_with_models_inside(sdk: openai.OpenAI, ask: Ask) -> None:
    [choice] = ask(
        sdk,
        asked(
            "Place the order: Anna orders 3 apples.",
            tools=[openai.pydantic_function_tool(Order, name="place_order")],
            tool_choice="required",
            parallel_tool_calls=False,
        ),
    ).choices

    [order] = arguments(choice)
    assert isinstance(order, Order)


def test_a_stream_shows_the_arguments_as_they_grow(sdk: openai.OpenAI) -> None:
    request = asked(BOTH_CITIES, tools=[WEATHER], tool_choice="required")
    with sdk.chat.completions.stream(**request) as stream:
        events: list[Any] = list(stream)

    kind = "tool_calls.function.arguments"
    growing = [event for event in events if event.type == f"{kind}.delta"]
    done = [event for event in events if event.type == f"{kind}.done"]
    assert [event.parsed_arguments for event in done] == [
        GetWeather(city="Paris"),
        GetWeather(city="Rome"),
    ]
    for index, event in enumerate(done):
        deltas = [delta.arguments_delta for delta in growing if delta.index == index]
        assert "".join(deltas) == event.arguments
        assert event.index == index
