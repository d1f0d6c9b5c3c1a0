"""What belongs to the Responses API alone: the effects of its parameters, and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ovchat_server.domain.responses.body import LOGPROBS
from tests.parameters.case import Bound, Effect, Fields, said
from tests.parameters.endpoints import SUM, USER, WEATHER
from tests.parameters.form import (
    ASKED,
    GREETED,
    REGEX,
    UNENFORCED,
    becomes_an_object,
    becomes_valid,
)
from tests.parameters.generation import COUNT, GREET, becomes
from tests.parameters.logits import shows_logprobs
from tests.parameters.responses_from_chats import RESPONSES_API, flat
from tests.parameters.values import ARRAY, BOOLEAN, INTEGER, OBJECT, SHORT, STRING
from tests.structured_output import SCHEMA

if TYPE_CHECKING:
    from tests.parameters.answers import Answer

of_chat = RESPONSES_API.of_chat
COUNTED, GREETING, TOLD = of_chat(COUNT[0]), of_chat(GREET[0]), of_chat(SUM)
OF_SCHEMA = {"type": "json_schema", "name": "person", "schema": SCHEMA}
SYSTEM = {**USER, "role": "system"}
BRIEF = "Be brief."
LONG = {"role": "user", "content": "Hello world. " * 3000}


def _is_the_same(without: Answer, given: Answer) -> bool:
    return without.choices == given.choices and without.usage == given.usage


def _effect(name: str, base: Fields, value: Any, shows: Any, why: str = "") -> Effect:
    return Effect("responses", name, base, {name: value}, shows, why)


INPUT: list[Effect] = [
    _effect(
        "input",
        {**GREETING, "max_output_tokens": 100},
        "What is 17 + 25?",
        becomes("Hello! How can I help you?", "17 + 25 = 42"),
        "a text",
    ),
    *(
        _effect("input", GREETING, value, _is_the_same, why)
        for why, value in (
            ("a text is a message", "Hi there!"),
            ("parts", [{"role": "user", "content": [{"type": "input_text", "text": "Hi there!"}]}]),
            ("what hosted tools did is left out", [USER, {"type": "web_search_call", "id": "x"}]),
        )
    ),
    Effect(
        "responses",
        "instructions",
        {**GREETING, "input": [{"role": "system", "content": BRIEF}, USER]},
        {"instructions": BRIEF, "input": [USER]},
        _is_the_same,
        "are a system message",
    ),
    _effect(
        "instructions",
        {**GREETING, "instructions": BRIEF},
        [{"role": "developer", "content": BRIEF}],
        _is_the_same,
        "as items",
    ),
    Effect(
        "responses",
        "truncation",
        {**GREETING, "input": [USER]},
        {"truncation": "auto", "input": [LONG, {"role": "assistant", "content": "Oh."}, USER]},
        _is_the_same,
        "leaves out what is too much",
    ),
    Effect(
        "responses",
        "truncation",
        GREETING,
        {"truncation": "auto"},
        _is_the_same,
        "leaves what fits as it is",
    ),
    _effect(
        "tools",
        of_chat(said("What is the weather in Paris?", tools=[WEATHER])),
        [flat(WEATHER), {"type": "web_search"}],
        _is_the_same,
        "hosted ones are left out",
    ),
]

# Beside what they say otherwise, the answer is the same.
TOLD_ONLY: list[Effect] = [
    _effect("store", COUNTED, value=False, shows=_is_the_same),
    _effect("metadata", COUNTED, {"a": "b"}, _is_the_same),
    _effect("include", COUNTED, ["reasoning.encrypted_content"], _is_the_same, "nothing here"),
    _effect("text", COUNTED, {"verbosity": "low"}, _is_the_same, "verbosity has no effect"),
    _effect("reasoning", TOLD, {"summary": "auto"}, _is_the_same, "the summary is the reasoning"),
]

OUTPUT: list[Effect] = [
    _effect("text", of_chat(ASKED[0]), {"format": OF_SCHEMA}, becomes_valid, "json_schema"),
    _effect(
        "text",
        of_chat(GREETED[0]),
        {"format": {"type": "json_object"}},
        becomes_an_object,
        "json_object",
    ),
    _effect("text", COUNTED, {"format": {"type": "text"}}, _is_the_same, "text is any"),
    _effect("top_logprobs", COUNTED, 1, shows_logprobs, "shows those of the text as well"),
    _effect(
        "top_logprobs",
        {**GREETING, "include": [LOGPROBS]},
        3,
        lambda _, given: all(
            len(tops) == 3 and tops[0] == token for token, _, tops in given.choices[0].logprobs
        ),
        "the likeliest first",
    ),
    _effect("stop", COUNTED, "fg", becomes("defghijk", "de"), "a string"),
    _effect("stop", COUNTED, ["zz", "ij", "hi"], becomes("defghijk", "defg"), "an array"),
    _effect(
        "stream",
        {**COUNTED, "max_output_tokens": 1000},
        value=True,
        shows=lambda without, given: not without.usages and len(given.usages) > 3,
    ),
    *(
        _effect("stream_options", {**COUNTED, "stream": True}, {name: True}, _is_the_same, name)
        for name in ("include_usage", "include_obfuscation")
    ),
]

EFFECTS = [*INPUT, *TOLD_ONLY, *OUTPUT]


def _bound(name: str, accepted: tuple[Any, ...], refused: tuple[Any, ...], **others: Any) -> Bound:
    return Bound("responses", name, accepted, refused, {**SHORT["responses"], **others})


BOUNDS: list[Bound] = [
    _bound("input", ("a", [USER] * 2048), ([], [USER] * 2049), model="library"),
    _bound("instructions", ("a", [SYSTEM]), ([], [USER], [SYSTEM] * 2049)),
    _bound("include", ([], [LOGPROBS]), (["x"],)),
    _bound("top_logprobs", (0, 1, 20), (-1, 21)),
    _bound("truncation", ("auto", "disabled"), ("left", "")),
    _bound("reasoning", ({}, {"summary": "concise"}), ({"summary": "x"},)),
    _bound(
        "metadata",
        ({}, {str(key): "" for key in range(16)}, {"k" * 64: "v" * 512}),
        ({str(key): "" for key in range(17)}, {"k" * 65: ""}, {"k": "v" * 513}),
    ),
    _bound(
        "text",
        ({}, {"format": {"type": "json_object"}}, {"format": OF_SCHEMA}, {"verbosity": "high"}),
        (
            {"format": {}},
            {"format": {"type": "x"}},
            {"format": {"type": "json_schema"}},
            {"format": {**OF_SCHEMA, "schema": UNENFORCED}},
            {"verbosity": "x"},
        ),
    ),
    # One form at most.
    _bound("structured_outputs", (REGEX,), (), text={"format": {"type": "text"}}),
    _bound("structured_outputs", (), (REGEX,), text={"format": {"type": "json_object"}}),
    _bound("ignore_eos", (False,), (True,), text={"format": {"type": "json_object"}}),
]

# What must be there for a parameter to mean something.
BESIDE: dict[str, Fields] = {
    "tool_choice": {"tools": [flat(WEATHER)], "model": "demo"},
    "max_output_tokens": {"stop": "d"},
    "top_logprobs": {},
    "length_penalty": {},
}

ITEMS = (1, True, {}, [1], ["x"])
WRONG_TYPES: dict[str, tuple[Any, ...]] = {
    "input": (*ITEMS, [{"role": "user", "content": 1}]),
    "instructions": ITEMS,
    "previous_response_id": STRING,
    "store": BOOLEAN,
    "tools": ARRAY,
    "text": (*OBJECT, {"format": 1}, {"format": {**OF_SCHEMA, "schema": 1}}, {"verbosity": 1}),
    "reasoning": (*OBJECT, {"effort": 1}, {"summary": 1}),
    "include": (1, True, "x", [1], {}),
    "truncation": STRING,
    "metadata": (*OBJECT, {"a": 1}),
    "max_output_tokens": INTEGER,
}
