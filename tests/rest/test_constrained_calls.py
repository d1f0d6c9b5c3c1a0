"""Calls that the model makes of its own accord, held to their tools, through OpenAI's SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import openai
import pytest

from tests.json_schemas import validate
from tests.rest.conftest import running_stack
from tests.rest.questions import HELLO, PARIS, SUM, TWO_CITIES, WEATHER
from tests.structured_output import SCHEMA, assert_valid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.settings import ModelSettings

# The demo model has learnt that the weather is asked for with {"city": ...}: this is another way.
FORECAST: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_forecast",
        "description": "Get the weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"enum": ["Lima", "Paris", "Rome"]},
                "unit": {"enum": ["celsius", "fahrenheit"]},
            },
            "required": ["place", "unit"],
            "additionalProperties": False,
        },
    },
}
ANSWER = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
DATA: list[Any] = [{"role": "user", "content": "Extract name and age as JSON: Anna is 31."}]


def only(*names: str, mode: str = "auto") -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def choices(sdk: openai.OpenAI, **fields: Any) -> Any:
    """One choice, which a stream makes, too."""
    asked: dict[str, Any] = {"model": "demo", "temperature": 0, "max_tokens": 200, **fields}
    choice = sdk.chat.completions.create(**asked).choices[0]
    with sdk.chat.completions.stream(**asked) as stream:
        streamed = stream.get_final_completion().choices[0]
    assert streamed.finish_reason == choice.finish_reason
    assert streamed.message.content == choice.message.content
    assert called(streamed) == called(choice)
    return choice


def called(choice: Any) -> list[tuple[str, dict[str, Any]]]:
    calls = choice.message.tool_calls or []
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


def test_arguments_follow_the_schema_once_a_call_is_opened(sdk: openai.OpenAI) -> None:
    choice = choices(sdk, messages=PARIS, tools=[FORECAST])

    [(name, arguments)] = called(choice)
    assert (name, choice.finish_reason) == ("get_forecast", "tool_calls")
    validate(arguments, FORECAST["function"]["parameters"])


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
)
def test_arguments_follow_the_schema_at_any_temperature(sdk: openai.OpenAI, seed: int) -> None:
    choice = choices(
        sdk, messages=TWO_CITIES, tools=[FORECAST], temperature=2, seed=seed, top_p=0.9
    )

    for name, arguments in called(choice):
        assert name == "get_forecast"
        validate(arguments, FORECAST["function"]["parameters"])


@pytest.mark.slow
def test_text_without_calls_is_what_it_is_without_tools_held_to(
    sdk: openai.OpenAI, unconstrained: openai.OpenAI
) -> None:
    for messages in (HELLO, SUM, PARIS, TWO_CITIES):
        held = choices(sdk, messages=messages, tools=[WEATHER]).message
        free = choices(unconstrained, messages=messages, tools=[WEATHER]).message
        assert held.content == free.content
        assert getattr(held, "reasoning_content", "") == getattr(free, "reasoning_content", "")


@pytest.mark.slow
def test_a_model_may_be_left_to_itself(unconstrained: openai.OpenAI) -> None:
    [(_, arguments)] = called(choices(unconstrained, messages=PARIS, tools=[FORECAST]))

    with pytest.raises(jsonschema.ValidationError):
        validate(arguments, FORECAST["function"]["parameters"])


def test_arguments_are_streamed_as_they_are_generated(sdk: openai.OpenAI) -> None:
    stream = sdk.chat.completions.create(
        model="demo", messages=TWO_CITIES, tools=[WEATHER], temperature=0, stream=True
    )
    deltas = [call for chunk in stream for call in chunk.choices[0].delta.tool_calls or []]

    assert [delta.index for delta in deltas if delta.id] == [0, 1]
    assert len(deltas) > 2
    for index, city in ((0, "Paris"), (1, "Rome")):
        fragments = [
            delta.function.arguments or ""
            for delta in deltas
            if delta.index == index and delta.function
        ]
        assert json.loads("".join(fragments)) == {"city": city}


def test_one_call_is_enough_where_several_are_not_wanted(sdk: openai.OpenAI) -> None:
    both = choices(sdk, messages=TWO_CITIES, tools=[WEATHER])
    one = choices(sdk, messages=TWO_CITIES, tools=[WEATHER], parallel_tool_calls=False)

    assert called(one) == called(both)[:1]
    assert len(called(both)) == 2
    assert one.finish_reason == "tool_calls"


def test_only_allowed_tools_are_called(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"messages": PARIS, "tools": [WEATHER, FORECAST]}
    [(chosen, _)] = called(choices(sdk, **asked))
    [(other, arguments)] = called(choices(sdk, **asked, tool_choice=only("get_forecast")))

    assert (chosen, other) == ("get_weather", "get_forecast")
    validate(arguments, FORECAST["function"]["parameters"])
    assert (
        called(choices(sdk, messages=HELLO, tools=[WEATHER], tool_choice=only("get_weather"))) == []
    )


def test_a_stop_token_inside_of_a_call_tells_that_it_was_cut(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"messages": PARIS, "tools": [WEATHER], "temperature": 0}
    paris: Any = sdk.post("/tokenize", body={"model": "demo", "prompt": "Paris"}, cast_to=object)
    choice = sdk.chat.completions.create(
        model="demo", **asked, extra_body={"stop_token_ids": paris["tokens"]}
    ).choices[0]

    [call] = choice.message.tool_calls or []
    assert call.function.arguments == '{"city": "'
    assert choice.finish_reason == "length"


def test_an_answer_with_a_format_may_call_instead(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"tools": [WEATHER], "response_format": ANSWER}
    calls = choices(sdk, messages=TWO_CITIES, **asked)
    answer = choices(sdk, messages=DATA, **asked)

    assert [arguments for _, arguments in called(calls)] == [{"city": "Paris"}, {"city": "Rome"}]
    assert calls.message.content is None
    assert called(answer) == []
    assert_valid(answer.message.content, SCHEMA)


def test_a_call_that_is_forced_needs_no_format(sdk: openai.OpenAI) -> None:
    choice = choices(
        sdk, messages=PARIS, tools=[WEATHER], response_format=ANSWER, tool_choice="required"
    )

    assert called(choice) == [("get_weather", {"city": "Paris"})]


def test_what_only_looks_like_a_call_in_a_formatted_answer_is_text(sdk: openai.OpenAI) -> None:
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    choice = choices(
        sdk,
        messages=HELLO,
        tools=[WEATHER],
        extra_body={"structured_outputs": {"choice": [f"Hello! {text}"]}},
    )

    assert (choice.message.content, called(choice)) == (f"Hello! {text}", [])


@pytest.mark.parametrize("fields", [{"min_tokens": 2}, {"ignore_eos": True}, {"best_of": 2}])
def test_what_a_grammar_cannot_be_combined_with_is_served_without(
    sdk: openai.OpenAI, fields: dict[str, Any]
) -> None:
    asked: dict[str, Any] = {"model": "demo", "messages": PARIS, "temperature": 0}
    answer = sdk.chat.completions.create(
        **asked, tools=[FORECAST], max_tokens=60, extra_body=fields
    )
    assert answer.choices[0].finish_reason in ("tool_calls", "length", "stop")

    with pytest.raises(openai.BadRequestError) as caught:
        sdk.chat.completions.create(
            **asked, tools=[FORECAST], tool_choice=only("get_forecast"), extra_body=fields
        )
    assert caught.value.param == next(iter(fields))


def test_a_schema_that_cannot_be_enforced_is_refused_only_where_it_is_strict(
    sdk: openai.OpenAI,
) -> None:
    schema = {"type": "object", "properties": {"city": {"not": {"type": "null"}}}}
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(101):
        deep = {"type": "array", "items": deep}
    for parameters in (schema, {"type": "object", "properties": {"a": deep}}):
        tool: dict[str, Any] = {"name": "get_weather", "parameters": parameters}
        loose = choices(sdk, messages=PARIS, tools=[{"type": "function", "function": tool}])
        assert [name for name, _ in called(loose)] == ["get_weather"]

        strict = {"type": "function", "function": tool | {"strict": True}}
        with pytest.raises(openai.BadRequestError) as caught:
            sdk.chat.completions.create(model="demo", messages=PARIS, tools=[strict])  # type: ignore[list-item]
        assert caught.value.param == "tools[0].function.parameters"


@pytest.fixture(scope="module")
def unconstrained(
    tmp_path_factory: pytest.TempPathFactory, demo: ModelSettings
) -> Iterator[openai.OpenAI]:
    """A server that leaves calls to the model."""
    model = msgspec.structs.replace(demo, constrain_tool_calls=False)
    with (
        running_stack(tmp_path_factory.mktemp("unconstrained"), model) as stack,
        openai.OpenAI(base_url=f"{stack.url}/v1", api_key="unused", max_retries=0) as client,
    ):
        yield client


@pytest.mark.parametrize(
    "parameters",
    [
        {"enum": [1, 2]},
        {"type": "string"},
        {"type": "array", "items": {"type": "integer"}},
        {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        {"$ref": "#/$defs/word", "$defs": {"word": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"type": "strin"}}},
    ],
)
def test_arguments_are_an_object_whatever_the_schema_says(
    sdk: openai.OpenAI, parameters: dict[str, Any]
) -> None:
    tool: dict[str, Any] = {"name": "get_weather", "parameters": parameters}
    asked: dict[str, Any] = {"messages": PARIS, "seed": 1, "tool_choice": "required"}
    one = {"parallel_tool_calls": False, "temperature": 1}
    choice = choices(sdk, **asked, **one, tools=[{"type": "function", "function": tool}])
    assert [type(arguments) for _, arguments in called(choice)] == [dict]

    strict = {"type": "function", "function": tool | {"strict": True}}
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.chat.completions.create(model="demo", **asked, tools=[strict])
    assert caught.value.param == "tools[0].function.parameters"


@pytest.mark.parametrize("city", ["Paris", "Rome"])
def test_a_format_beside_tools_makes_no_more_calls(sdk: openai.OpenAI, city: str) -> None:
    asked: list[Any] = [{"role": "user", "content": f"What is the weather in {city}?"}]
    alone = called(choices(sdk, messages=asked, tools=[WEATHER]))
    beside = called(choices(sdk, messages=asked, tools=[WEATHER], response_format=ANSWER))
    assert beside == alone == [("get_weather", {"city": city})]


@pytest.mark.slow
def test_strict_tools_are_held_to_even_where_others_are_not(unconstrained: openai.OpenAI) -> None:
    strict = {"type": "function", "function": FORECAST["function"] | {"strict": True}}
    [(_, arguments)] = called(choices(unconstrained, messages=PARIS, tools=[strict]))
    validate(arguments, FORECAST["function"]["parameters"])


@pytest.mark.parametrize("tool_choice", ["auto", pytest.param("required", marks=pytest.mark.slow)])
def test_nothing_of_a_calls_markup_is_said_wherever_it_is_cut(
    sdk: openai.OpenAI, tool_choice: str
) -> None:
    whole = '{"city": "Paris"}'
    for most in range(1, 24):
        choice = sdk.chat.completions.create(
            model="demo",
            messages=PARIS,
            tools=[WEATHER],
            tool_choice=tool_choice,  # type: ignore[arg-type]
            temperature=0,
            max_tokens=most,
        ).choices[0]
        if calls := choice.message.tool_calls:
            assert not choice.message.content
            assert whole.startswith(calls[0].function.arguments)
