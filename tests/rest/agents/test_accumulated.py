"""The accumulator of OpenAI's SDK takes every kind of stream and comes to the whole answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import openai
import pytest

from tests.rest.agents.person import AS_JSON, WHO, Person
from tests.rest.agents.weather import BOTH_CITIES, PARIS, REQUIRED, TOOLS
from tests.usage import counted

if TYPE_CHECKING:
    from openai.types.chat.chat_completion import Choice

COUNT = "Count to 10"
SUM = "What is 17 + 25?"
STORY = "Tell me a story."
# The engine's rounding depends on what it runs at once.
ROUNDING = 1e-4


SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "person", "schema": Person.model_json_schema()},
}
STRICT = openai.pydantic_function_tool(Person, name="get_weather")
NAMED = {"type": "function", "function": {"name": "get_weather"}}
WITH_STOP = {"include_stop_str_in_output": True}
SAMPLED: dict[str, Any] = {"temperature": 1, "seed": 5}


@dataclass(frozen=True, slots=True)
class Kind:
    """A request whose choices end for `finish` and consist of `parts`."""

    name: str
    question: str
    parts: set[str]
    finish: str
    fields: dict[str, Any]

    def __str__(self) -> str:
        return self.name

    @property
    def request(self) -> dict[str, Any]:
        messages = [{"role": "user", "content": self.question}]
        limits = {"temperature": 0, "max_tokens": 200}
        return {"model": "demo", "messages": messages, **limits, **self.fields}


def kind(name: str, question: str, parts: str, finish: str = "stop", **fields: Any) -> Kind:
    return Kind(name, question, set(parts.split()), finish, fields)


def calling(name: str, question: str, finish: str = "tool_calls", **fields: Any) -> Kind:
    return kind(name, question, "calls", finish, **{"tools": TOOLS, **fields})


KINDS = [
    kind("text", COUNT, "content"),
    kind("text, cut", COUNT, "content", "length", max_tokens=5),
    kind("text, stopped", COUNT, "content", stop=["5"]),
    kind("text, stopped after", COUNT, "content", stop="5", extra_body=WITH_STOP),
    kind("text, three", STORY, "content", n=3, **SAMPLED),
    kind("text, logprobs", STORY, "content tokens", n=2, logprobs=True, top_logprobs=1, **SAMPLED),
    kind("nothing, stopped", COUNT, "", stop=["1"]),
    kind("reasoning", SUM, "reasoning content"),
    kind("reasoning, two", SUM, "reasoning content", n=2),
    kind("reasoning, logprobs", SUM, "reasoning content tokens", logprobs=True),
    kind("reasoning, cut", SUM, "reasoning", "length", max_tokens=6),
    calling("call", PARIS),
    calling("calls", BOTH_CITIES),
    calling("calls, two", BOTH_CITIES, n=2),
    calling("calls, one at a time", BOTH_CITIES, parallel_tool_calls=False),
    calling("call, required", PARIS, **REQUIRED),
    calling("calls, required", BOTH_CITIES, **REQUIRED),
    calling("calls, required, two", BOTH_CITIES, n=2, **REQUIRED),
    calling("call, named", BOTH_CITIES, tool_choice=NAMED),
    calling("call, strict", PARIS, tools=[STRICT], parallel_tool_calls=False, **REQUIRED),
    calling("call, required, cut", PARIS, "length", max_tokens=14, **REQUIRED),
    calling("calls, required, cut", BOTH_CITIES, "length", max_tokens=31, **REQUIRED),
    kind(
        "calls, required, logprobs",
        BOTH_CITIES,
        "calls tokens",
        "tool_calls",
        tools=TOOLS,
        logprobs=True,
        **REQUIRED,
    ),
    kind("object", AS_JSON, "content", response_format={"type": "json_object"}),
    kind("schema", WHO, "content", response_format=SCHEMA),
    kind("schema, two", WHO, "content", response_format=SCHEMA, n=2),
    kind("schema, cut", WHO, "content", "length", response_format=SCHEMA, max_tokens=5),
]


def parts(choice: Choice) -> dict[str, Any]:
    """What a choice consists of; an empty text is none, as in a stream."""
    message, logprobs = choice.message, choice.logprobs
    assert (message.role, message.refusal) == ("assistant", None)
    found = {
        "content": message.content,
        "reasoning": getattr(message, "reasoning_content", None),
        "calls": [
            (call.type, call.function.name, call.function.arguments)
            for call in message.tool_calls or []
            if call.type == "function"
        ],
        "tokens": [(token.token, token.bytes) for token in (logprobs and logprobs.content) or []],
    }
    return {name: part for name, part in found.items() if part}


def likelihoods(choice: Choice) -> list[float]:
    content = (choice.logprobs and choice.logprobs.content) or []
    alternatives = [other.logprob for token in content for other in token.top_logprobs]
    return [token.logprob for token in content] + alternatives


@pytest.mark.parametrize("case", KINDS, ids=str)
def test_a_stream_accumulates_to_the_whole_answer(sdk: openai.OpenAI, case: Kind) -> None:
    whole = sdk.chat.completions.create(**case.request)
    with sdk.chat.completions.stream(
        **case.request, stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        joined = stream.current_completion_snapshot
        # It refuses to give what was cut, where it could have parsed it.
        if case.finish != "length":
            assert stream.get_final_completion().id == joined.id

    assert (joined.object, joined.model) == (whole.object, whole.model)
    assert joined.system_fingerprint == whole.system_fingerprint
    assert counted(joined.usage) == counted(whole.usage)
    assert len(joined.choices) == case.fields.get("n", 1)
    for streamed, choice in zip(joined.choices, whole.choices, strict=True):
        assert streamed.index == choice.index
        assert streamed.finish_reason == choice.finish_reason == case.finish
        assert parts(streamed) == parts(choice)
        assert set(parts(choice)) == case.parts
        assert likelihoods(streamed) == pytest.approx(likelihoods(choice), abs=ROUNDING)
    ids = [
        call.id
        for completion in (joined, whole)
        for choice in completion.choices
        for call in choice.message.tool_calls or []
    ]
    assert all(ids)
    assert len(set(ids)) == len(ids)
