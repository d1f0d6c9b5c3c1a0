"""Calls held to their tools' schemas, in every dialect, on the real engine with the demo model."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from ovchat_server.chat.dialects.base import CombinedDialect, CombinedOptions, ParserOptions
from ovchat_server.chat.dialects.registry import TOOL_DIALECTS
from ovchat_server.domain.chat import Tool
from ovchat_server.engine.contract.generation import Sampling, TokenFinish
from ovchat_server.grammar.formats import either, grammar_text
from ovchat_server.serving.held_tools import NO_ARGUMENTS
from tests.engine.test_structured_output import answer, demo, request
from tests.grammars import called_tool, json_format, unenforced
from tests.json_schemas import random_schema, validate
from tests.unit.dialects.writers import WRITERS

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.base import Output, ToolDialect
    from ovchat_server.chat.dialects.call_format import CalledTool, CallFormat
    from tests.engine.conftest import Watched

__all__ = ["demo"]

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "unit": {"enum": ["celsius", "kelvin"]},
        "exact": {"type": "boolean"},
    },
    "required": ["city", "days", "unit", "exact"],
    "additionalProperties": False,
}
TRIP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "stops": {"type": "array", "items": {"$ref": "#/$defs/stop"}, "maxItems": 2},
        "note": {"type": ["string", "null"], "maxLength": 8},
    },
    "required": ["stops"],
    "additionalProperties": False,
    "$defs": {
        "stop": {
            "type": "object",
            "properties": {"place": {"enum": ["Paris", "Rome"]}, "nights": {"type": "integer"}},
            "required": ["place"],
            "additionalProperties": False,
        }
    },
}
SWITCH: dict[str, Any] = {
    "type": "object",
    "properties": {"on": {"type": "boolean"}},
    "required": ["on"],
    "additionalProperties": False,
}
# Names that begin alike, and with all that a name may hold.
SCHEMAS: dict[str, Any] = {
    "get_weather": WEATHER,
    "plan-trip.v2": TRIP,
    "plan-trip": NO_ARGUMENTS,
}
RANDOM_TOOLS = 12
FORMS = [(dialect, dialect.format) for dialect in TOOL_DIALECTS if dialect.format]

# Calls in JSON and in channels: those in tags are tested by their arguments, all by unit tests.
IN_GATE = ("hermes", "hermes-0", "gpt_oss-0")


def row(dialect: ToolDialect | CombinedDialect, form: CallFormat, name: str) -> Any:
    marks = [] if name in IN_GATE else [pytest.mark.slow]
    return pytest.param(dialect, form, id=name, marks=marks)


every_dialect = pytest.mark.parametrize(
    ("dialect", "form"), [row(dialect, form, dialect.name) for dialect, form in FORMS]
)
# Those of a dialect one by one: the model would choose some of them only.
ALONE = [
    (dialect, dataclasses.replace(one, also=()), f"{dialect.name}-{index}")
    for dialect, form in FORMS
    for index, one in enumerate((form, *form.also))
]
every_form = pytest.mark.parametrize(("dialect", "form"), [row(*one) for one in ALONE])


def called(form: CallFormat, schemas: dict[str, Any]) -> list[CalledTool]:
    return [called_tool(form, name, schema) for name, schema in schemas.items()]


def offered(schemas: dict[str, Any]) -> tuple[Tool, ...]:
    return tuple(Tool(name, None, schema) for name, schema in schemas.items())


def parsed(
    dialect: ToolDialect | CombinedDialect, text: str, options: ParserOptions, pieces: int = 1
) -> tuple[str, list[Any]]:
    """The content of an answer and the calls in it."""
    parser = (
        dialect.parser(CombinedOptions(options))
        if isinstance(dialect, CombinedDialect)
        else dialect.parser(options)
    )
    size = -(-len(text) // pieces) or 1
    found: list[Output] = [parser.feed(text[at : at + size]) for at in range(0, len(text), size)]
    found.append(parser.flush())
    calls: list[tuple[str, str]] = []
    for piece in (call for item in found for call in item.calls):
        if piece.name is None:
            name, arguments = calls.pop()
            calls.append((name, arguments + piece.arguments))
        else:
            calls.append((piece.name, piece.arguments))
    return "".join(item.content for item in found), calls


def calls_in(
    dialect: ToolDialect | CombinedDialect, text: str, schemas: dict[str, Any]
) -> list[tuple[str, str]]:
    """The calls that an answer is, each of a tool and after its schema."""
    trusting = ParserOptions(offered(schemas), calls_enforced=True)
    content, calls = parsed(dialect, text, trusting)
    assert content == ""
    assert parsed(dialect, text, trusting, len(text)) == ("", calls)
    # Nothing was cut off, which parsers forgive: what follows is content.
    after = WRITERS[dialect.name].say("after")
    assert parsed(dialect, text + after, ParserOptions(offered(schemas))) == ("after", calls)
    for name, arguments in calls:
        validate(json.loads(arguments), schemas[name])
    return calls


async def answers(watched: Watched, form: Any, count: int, temperature: float = 1) -> list[str]:
    """What the model says under a form, where it came to an end."""
    text = grammar_text(form)
    assert await watched.engine.check_grammar(text) == ""
    asked = [
        dataclasses.replace(
            request(text, max_tokens=400), sampling=Sampling(temperature, seed=seed)
        )
        for seed in range(count)
    ]
    said = await asyncio.gather(*(answer(watched, one) for one in asked))
    return [text for text, finish in said if finish is TokenFinish.STOP]


@every_form
async def test_forced_calls_follow_their_schemas(
    demo: Watched, dialect: ToolDialect | CombinedDialect, form: CallFormat
) -> None:
    ended = await answers(demo, form.forced(called(form, SCHEMAS), parallel=False), 12)

    assert len(ended) > 4
    assert all(len(calls_in(dialect, text, SCHEMAS)) == 1 for text in ended)


@every_form
@pytest.mark.parametrize(
    "name",
    [
        "plan-trip",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("get_weather", "plan-trip.v2")),
    ],
)
async def test_a_function_is_called_by_its_name(
    demo: Watched, dialect: ToolDialect | CombinedDialect, form: CallFormat, name: str
) -> None:
    only = {name: SCHEMAS[name]}

    ended = await answers(demo, form.forced(called(form, only), parallel=False), 8)

    assert ended
    for text in ended:
        [(said, arguments)] = calls_in(dialect, text, SCHEMAS)
        assert said == name
        assert name != "plan-trip" or json.loads(arguments) == {}


@every_form
async def test_several_calls_may_be_forced(
    demo: Watched, dialect: ToolDialect | CombinedDialect, form: CallFormat
) -> None:
    some = {"first": SWITCH, "second": SWITCH}

    # By chance: the demo model calls once only.
    ended = await answers(demo, form.forced(called(form, some), parallel=True), 12, temperature=100)

    assert any(len(calls_in(dialect, text, some)) > 1 for text in ended)


@every_form
async def test_calls_that_the_model_opens_follow_their_schemas(
    demo: Watched, dialect: ToolDialect | CombinedDialect, form: CallFormat
) -> None:
    if not form.trigger:
        pytest.skip("nothing tells that a call was opened")
    # The demo model opens calls of its own dialect only.
    opened = form.free(called(form, SCHEMAS), parallel=False) | {"at_least_one": True}

    ended = await answers(demo, opened, 12)

    assert len(ended) > 4
    assert all(len(calls_in(dialect, text, SCHEMAS)) == 1 for text in ended)


@every_dialect
async def test_the_model_chooses_among_the_forms_of_its_dialect(
    demo: Watched, dialect: ToolDialect | CombinedDialect, form: CallFormat
) -> None:
    tools = called(form, SCHEMAS)
    forms = [form.forced(tools, parallel=False)]
    if form.trigger:
        forms.append(form.free(tools, parallel=False) | {"at_least_one": True})

    for one in forms:
        ended = await answers(demo, one, 12)
        assert len(ended) > 4
        assert all(len(calls_in(dialect, text, SCHEMAS)) == 1 for text in ended)


@every_dialect
async def test_an_answer_of_another_form_may_come_instead(
    demo: Watched, dialect: ToolDialect | CombinedDialect, form: CallFormat
) -> None:
    some = {"first": SWITCH, "second": SWITCH}
    other = either(*form.instead(called(form, some), parallel=True), json_format({"const": 1}))

    ended = await answers(demo, other, 16, temperature=100)

    counts = {
        0 if text == "1" else len(calls_in(dialect, text.removesuffix(" "), some)) for text in ended
    }
    assert 0 in counts
    assert max(counts) > 0


def random_tool(rng: random.Random, form: CallFormat) -> dict[str, Any]:
    """A schema of arguments that calls can be held to."""
    while True:
        schema = random_schema(rng)
        if schema.get("type") != "object":
            schema = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
        if not (unenforced(schema) or unenforced(schema, form.arguments)) and _is_schema(schema):
            return schema


def _is_schema(schema: dict[str, Any]) -> bool:
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return False
    return True


@pytest.mark.slow
@every_form
async def test_a_tool_of_any_schema_is_called_after_it(
    demo: Watched, dialect: ToolDialect | CombinedDialect, form: CallFormat
) -> None:
    async def outcome(seed: int) -> str:
        schemas = {"a_tool": random_tool(random.Random(seed), form)}
        calls = form.forced(called(form, schemas), parallel=False)
        text = grammar_text(calls)
        if await demo.engine.check_grammar(text):
            return "refused"
        said, finish = await answer(demo, request(text, seed, 200))
        if finish is not TokenFinish.STOP:
            return "length"
        assert len(calls_in(dialect, said, schemas)) == 1
        return "valid"

    outcomes = await asyncio.gather(*map(outcome, range(RANDOM_TOOLS)))

    assert outcomes.count("valid") > RANDOM_TOOLS / 4
    assert outcomes.count("refused") < RANDOM_TOOLS / 4
