"""Calls that are forced, limited or hidden, through OpenAI's SDK for Python."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.json_schemas import validate
from tests.rest.questions import HELLO, PARIS, SUM, TWO_CITIES, WEATHER
from tests.usage import counted

TIME: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "parameters": {
            "type": "object",
            "properties": {
                "zone": {"type": "string", "enum": ["UTC", "CET"]},
                "precise": {"type": "boolean"},
            },
            "required": ["zone", "precise"],
            "additionalProperties": False,
        },
    },
}
PING: dict[str, Any] = {"type": "function", "function": {"name": "ping"}}
NAMED = {"type": "function", "function": {"name": "get_time"}}


def calls(sdk: openai.OpenAI, **fields: Any) -> list[tuple[str, dict[str, Any]]]:
    """The calls of an answer, which a stream makes, too."""
    asked: dict[str, Any] = {"model": "demo", "temperature": 0, "max_tokens": 200, **fields}
    choice = sdk.chat.completions.create(**asked).choices[0]
    with sdk.chat.completions.stream(**asked) as stream:
        streamed = stream.get_final_completion().choices[0]
    found = [
        [
            (function.name, json.loads(function.arguments))
            for function in [
                *(call.function for call in one.message.tool_calls or []),
                *filter(None, [one.message.function_call]),
            ]
        ]
        for one in (choice, streamed)
    ]
    assert found[0] == found[1]
    assert choice.finish_reason == streamed.finish_reason
    if found[0]:
        older = "functions" in fields
        assert choice.finish_reason == ("function_call" if older else "tool_calls")
    return found[0]


def test_a_required_call_is_made_whatever_was_said(sdk: openai.OpenAI) -> None:
    [(name, arguments)] = calls(
        sdk, messages=HELLO, tools=[TIME], tool_choice="required", parallel_tool_calls=False
    )
    assert name == "get_time"
    validate(arguments, TIME["function"]["parameters"])


def test_a_function_by_name_is_the_one_that_is_called(sdk: openai.OpenAI) -> None:
    [(name, arguments)] = calls(sdk, messages=PARIS, tools=[WEATHER, TIME, PING], tool_choice=NAMED)
    assert name == "get_time"
    validate(arguments, TIME["function"]["parameters"])


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))]
)
def test_the_arguments_follow_the_schema_at_any_temperature(sdk: openai.OpenAI, seed: int) -> None:
    [(_, arguments)] = calls(
        sdk, messages=HELLO, tools=[TIME], tool_choice=NAMED, temperature=2, seed=seed
    )
    validate(arguments, TIME["function"]["parameters"])


def test_a_function_without_parameters_is_called_with_none(sdk: openai.OpenAI) -> None:
    named = {"type": "function", "function": {"name": "ping"}}
    assert calls(sdk, messages=HELLO, tools=[PING], tool_choice=named) == [("ping", {})]


def test_some_of_the_tools_may_be_required(sdk: openai.OpenAI) -> None:
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}}
    found = calls(sdk, messages=PARIS, tools=[WEATHER, TIME], tool_choice=allowed)
    assert {name for name, _ in found} == {"get_time"}


def test_several_calls_are_one_where_they_are_not_wanted(sdk: openai.OpenAI) -> None:
    both = calls(sdk, messages=TWO_CITIES, tools=[WEATHER])
    assert [arguments["city"] for _, arguments in both] == ["Paris", "Rome"]
    for choice in ("auto", "required"):
        assert (
            calls(
                sdk,
                messages=TWO_CITIES,
                tools=[WEATHER],
                tool_choice=choice,
                parallel_tool_calls=False,
            )
            == both[:1]
        )


def test_reasoning_comes_before_a_forced_call(sdk: openai.OpenAI) -> None:
    with_thinking = {"chat_template_kwargs": {"enable_thinking": True}}
    [(name, _)] = calls(
        sdk,
        messages=PARIS,
        tools=[WEATHER],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
        extra_body=with_thinking,
    )
    assert name == "get_weather"


def test_the_older_form_calls_as_the_newer(sdk: openai.OpenAI) -> None:
    newer = calls(sdk, messages=PARIS, tools=[WEATHER], tool_choice="auto")
    function = dict(WEATHER["function"])
    assert calls(sdk, messages=PARIS, functions=[function], function_call="auto") == newer
    assert (
        calls(sdk, messages=PARIS, functions=[function], function_call={"name": "get_weather"})
        == newer
    )
    assert calls(sdk, messages=PARIS, functions=[function], function_call="none") == []


def test_the_arguments_are_streamed_as_they_are_generated(sdk: openai.OpenAI) -> None:
    stream = sdk.chat.completions.create(
        model="demo",
        messages=PARIS,
        tools=[WEATHER],
        tool_choice="required",
        temperature=0,
        stream=True,
    )
    deltas = [call for chunk in stream for call in chunk.choices[0].delta.tool_calls or []]
    assert [delta.id is not None for delta in deltas] == [True] + [False] * (len(deltas) - 1)
    assert [delta.function.name for delta in deltas if delta.function][:2] == ["get_weather", None]
    assert len(deltas) > 1
    whole = "".join(delta.function.arguments or "" for delta in deltas if delta.function)
    assert json.loads(whole) == {"city": "Paris"}


def test_a_call_that_was_cut_is_told_by_its_length(sdk: openai.OpenAI) -> None:
    choice = sdk.chat.completions.create(
        model="demo",
        messages=PARIS,
        tools=[WEATHER],
        tool_choice="required",
        temperature=0,
        max_tokens=14,
    ).choices[0]
    [call] = choice.message.tool_calls or []
    assert choice.finish_reason == "length"
    assert '{"city": "Paris"}'.startswith(call.function.arguments)


def test_reasoning_may_be_left_out(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "demo", "messages": SUM, "temperature": 0}
    shown = sdk.chat.completions.create(**asked)
    hidden = sdk.chat.completions.create(**asked, extra_body={"include_reasoning": False})
    assert shown.choices[0].message.reasoning_content  # type: ignore[attr-defined]
    assert not hasattr(hidden.choices[0].message, "reasoning_content")
    assert hidden.choices[0].message.content == shown.choices[0].message.content
    assert counted(hidden.usage) == counted(shown.usage)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": NAMED, "tools": [WEATHER]}, "tool_choice.function.name"),
        ({"tools": [], "tool_choice": "required"}, "tool_choice"),
        (
            {"tools": [WEATHER], "tool_choice": "required", "extra_body": {"ignore_eos": True}},
            "ignore_eos",
        ),
        (
            {"tools": [WEATHER], "tool_choice": "required", "extra_body": {"best_of": 2}},
            "best_of",
        ),
        (
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {
                            "name": "f",
                            "strict": True,
                            "parameters": {"type": "object", "not": {"required": ["a"]}},
                        },
                    }
                ],
                "tool_choice": "required",
            },
            "tools[0].function.parameters",
        ),
    ],
)
def test_what_cannot_be_forced_is_refused_by_name(
    sdk: openai.OpenAI, fields: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.chat.completions.create(model="demo", messages=HELLO, **fields)
    assert caught.value.param == param


def test_a_model_whose_calls_cannot_be_forced_says_so(sdk: openai.OpenAI) -> None:
    complaint = "its tool calls cannot be forced"
    with pytest.raises(openai.BadRequestError, match=complaint) as caught:
        sdk.chat.completions.create(
            model="successor", messages=HELLO, tools=[PING], tool_choice="required"
        )
    assert caught.value.param == "tool_choice"


def test_calls_may_be_written_into_the_text(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {
        "model": "demo",
        "messages": PARIS,
        "tools": [WEATHER],
        "temperature": 0,
        "extra_body": {"agent_format": "llama3"},
    }
    message = sdk.chat.completions.create(**asked).choices[0].message
    stream = sdk.chat.completions.create(**asked, stream=True)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert message.content == streamed
    assert message.content.startswith("<function_call>\n{")
    assert len(message.tool_calls or []) == 1
