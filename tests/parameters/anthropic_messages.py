"""What belongs to the Messages API alone: the effects of its parameters, and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.parameters.case import Bound, Effect, Fields, said
from tests.parameters.endpoints import BEGUN, SUM, USER, WEATHER
from tests.parameters.form import ASKED, REGEX, UNENFORCED, becomes_valid
from tests.parameters.generation import COUNT, GREET, becomes
from tests.parameters.messages_from_chats import MESSAGES_API, with_input_schema
from tests.parameters.values import ARRAY, OBJECT, SHORT, STRINGS
from tests.structured_output import SCHEMA

if TYPE_CHECKING:
    from tests.parameters.answers import Answer

of_chat = MESSAGES_API.of_chat
COUNTED, GREETING, SUMMED = of_chat(COUNT[0]), of_chat(GREET[0]), of_chat(SUM)
ADAPTIVE = {"type": "adaptive"}
REASONED: Fields = {**SUMMED, "thinking": ADAPTIVE}
TOOL = with_input_schema(WEATHER)
HELLO = {"type": "text", "text": "Hi there!"}
EMPTY = {"type": "text", "text": ""}
BRIEF = "Be brief."
OF_SCHEMA = {"type": "json_schema", "schema": SCHEMA}


def _is_the_same(without: Answer, given: Answer) -> bool:
    return without.choices == given.choices and without.usage == given.usage


def _reasons(without: Answer, given: Answer) -> bool:
    return (
        without.choices[0].reasoning == ""
        and "carry" in given.choices[0].reasoning
        and given.text == without.text == "17 + 25 = 42"
    )


def _effect(name: str, base: Fields, value: Any, shows: Any, why: str = "") -> Effect:
    return Effect("messages", name, base, {name: value}, shows, why)


PROMPT: list[Effect] = [
    _effect(
        "system",
        GREETING,
        BRIEF,
        lambda without, given: given.prompt_tokens > without.prompt_tokens,
    ),
    _effect(
        "system",
        {**GREETING, "system": BRIEF},
        [EMPTY, {"type": "text", "text": BRIEF}],
        _is_the_same,
        "blocks",
    ),
    _effect(
        "messages",
        GREETING,
        [{"role": "user", "content": "abc"}],
        lambda without, given: without.prompt_tokens != given.prompt_tokens,
    ),
    *(
        _effect("messages", GREETING, value, _is_the_same, why)
        for why, value in (
            ("blocks", [{"role": "user", "content": [HELLO, EMPTY]}]),
            (
                "what hosted tools did is left out",
                [USER, {"role": "assistant", "content": [{"type": "server_tool_use", "id": "x"}]}],
            ),
        )
    ),
    _effect(
        "messages",
        GREETING,
        BEGUN["messages"],
        becomes("Hello! How can I help you?", " can I help you?"),
        "what the assistant began goes on",
    ),
    _effect(
        "tools",
        {**of_chat(said("What is the weather in Paris?")), "tools": [TOOL]},
        [TOOL, {"type": "web_search_20250305", "name": "web_search"}],
        _is_the_same,
        "hosted ones are left out",
    ),
    _effect(
        "tool_choice",
        {**GREETING, "tools": [TOOL], "max_tokens": 200},
        {"type": "tool", "name": "get_weather"},
        lambda without, given: (
            not without.choices[0].calls
            and [name for name, _ in given.choices[0].calls] == ["get_weather"]
        ),
        "tool",
    ),
]

OUTPUT: list[Effect] = [
    _effect("thinking", SUMMED, ADAPTIVE, _reasons, "adaptive"),
    _effect("thinking", SUMMED, {"type": "enabled", "budget_tokens": 1024}, _reasons, "enabled"),
    _effect("thinking", SUMMED, {"type": "disabled"}, _is_the_same, "disabled as if absent"),
    _effect(
        "thinking",
        REASONED,
        {**ADAPTIVE, "display": "omitted"},
        lambda without, given: (
            without.choices[0].reasoning
            and not given.choices[0].reasoning
            and (given.text, given.usage) == (without.text, without.usage)
        ),
        "omitted",
    ),
    _effect("output_config", SUMMED, {"effort": "high"}, _is_the_same, "effort is no thinking"),
    _effect("output_config", of_chat(ASKED[0]), {"format": OF_SCHEMA}, becomes_valid, "format"),
    _effect("output_format", of_chat(ASKED[0]), OF_SCHEMA, becomes_valid),
    _effect(
        "stream",
        {**COUNTED, "max_tokens": 1000},
        value=True,
        shows=lambda without, given: not without.usages and len(given.usages) > 3,
    ),
]

EFFECTS = [*PROMPT, *OUTPUT]


def _bound(name: str, accepted: tuple[Any, ...], refused: tuple[Any, ...], **others: Any) -> Bound:
    return Bound("messages", name, accepted, refused, {**SHORT["messages"], **others})


# Neighbours of one role would be one turn, too long for the model.
TURNS = [USER, {"role": "assistant", "content": "Hello!"}] * 1024
BOUNDS: list[Bound] = [
    _bound("messages", ([USER], TURNS), ([], [*TURNS, USER]), model="library"),
    _bound("system", ("a", [], [EMPTY] * 1024), ([EMPTY] * 1025, [{"type": "image"}])),
    _bound("tool_choice", (), ({}, {"type": "tool"}), model="demo", tools=[TOOL]),
    _bound(
        "thinking",
        (
            {"type": "disabled"},
            {"type": "adaptive", "display": "summarized"},
            *({"type": "enabled", "budget_tokens": budget} for budget in (1, 2**32 - 1)),
        ),
        (
            {},
            {"type": "x"},
            {"type": "enabled"},
            *({"type": "enabled", "budget_tokens": budget} for budget in (0, 2**32)),
            {"type": "adaptive", "display": "x"},
        ),
    ),
    _bound(
        "output_config",
        ({}, {"format": OF_SCHEMA}, *({"effort": effort} for effort in ("low", "max"))),
        (
            {"effort": "none"},
            {"format": {}},
            {"format": {"type": "text"}},
            {"format": {"type": "json_schema"}},
            {"format": {**OF_SCHEMA, "schema": UNENFORCED}},
        ),
    ),
    _bound("output_format", (OF_SCHEMA,), ({}, {**OF_SCHEMA, "schema": UNENFORCED})),
    # One form at most, whatever it is called; the last one is named.
    _bound("output_format", (), (OF_SCHEMA,), output_config={"format": OF_SCHEMA}),
    _bound("structured_outputs", (), (REGEX,), output_config={"format": OF_SCHEMA}),
    _bound("ignore_eos", (False,), (True,), output_config={"format": OF_SCHEMA}),
]

# What must be there for a parameter to mean something.
BESIDE: dict[str, Fields] = {
    "tool_choice": {"tools": [TOOL], "model": "demo"},
    "max_tokens": {"stop_sequences": "d"},
}

BLOCKS = (1, True, {}, [1], ["x"])
FORMATS = (*OBJECT, {**OF_SCHEMA, "type": 1}, {**OF_SCHEMA, "schema": 1})
WRONG_TYPES: dict[str, tuple[Any, ...]] = {
    "system": BLOCKS,
    "messages": (*ARRAY, *([{"role": "user", "content": value}] for value in BLOCKS)),
    "stop_sequences": STRINGS,
    "tools": (*ARRAY, [{**TOOL, "name": 1}], [{**TOOL, "input_schema": "x"}]),
    "tool_choice": (*OBJECT, {"type": 1}, {"type": "auto", "disable_parallel_tool_use": 1}),
    "thinking": (
        *OBJECT,
        {"type": 1},
        {"type": "enabled", "budget_tokens": "1"},
        {"type": "adaptive", "display": 1},
    ),
    "output_config": (*OBJECT, {"effort": 1}, *({"format": value} for value in FORMATS)),
    "output_format": FORMATS,
}
