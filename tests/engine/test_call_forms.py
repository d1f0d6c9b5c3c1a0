"""Calls held to their tools' schemas, in every dialect, on the real engine with the demo model."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from ovchat_server.api.chat import Tool
from ovchat_server.api.structured_output import Constraint, ConstraintKind
from ovchat_server.chat.dialects.base import CombinedDialect, CombinedOptions, ParserOptions
from ovchat_server.chat.dialects.call_form import CalledTool
from ovchat_server.chat.dialects.registry import TOOL_DIALECTS
from ovchat_server.engine.base import TokenFinish
from ovchat_server.engine.grammar import grammar_text
from ovchat_server.engine.json_layout import laid_out
from tests.engine.test_structured_output import answer, demo, request

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.base import Output, Parsed, ToolDialect
    from ovchat_server.chat.dialects.call_form import CallForm
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
SCHEMAS = {"get_weather": WEATHER, "plan-trip.v2": TRIP}
TOOLS = [
    CalledTool(name, schema, partial(laid_out, root=schema)) for name, schema in SCHEMAS.items()
]
OFFERED = tuple(Tool(name, None, schema) for name, schema in SCHEMAS.items())
FORMS = [(dialect, dialect.form) for dialect in TOOL_DIALECTS if dialect.form]
NAMES = [dialect.name for dialect, _ in FORMS]

every_form = pytest.mark.parametrize(("dialect", "form"), FORMS, ids=NAMES)


def parsed(dialect: ToolDialect | CombinedDialect, text: str, pieces: int) -> tuple[str, list[Any]]:
    """The content of an answer and the calls in it, from a parser that trusts."""
    options = ParserOptions(OFFERED, trusted=True)
    parser = (
        dialect.parser(CombinedOptions(options))
        if isinstance(dialect, CombinedDialect)
        else dialect.parser(options)
    )
    size = -(-len(text) // pieces) or 1
    found: list[Parsed | Output] = [
        parser.feed(text[at : at + size]) for at in range(0, len(text), size)
    ]
    found.append(parser.flush())
    calls: list[tuple[str, str]] = []
    for piece in (call for item in found for call in item.calls):
        if piece.name is None:
            name, arguments = calls.pop()
            calls.append((name, arguments + piece.arguments))
        else:
            calls.append((piece.name, piece.arguments))
    return "".join(item.content for item in found), calls


async def answers(watched: Watched, form: Any, count: int, **fields: Any) -> list[str]:
    """What the model says under a form, where it came to an end."""
    said = await all_answers(watched, form, count, **fields)
    return [text for text, finish in said if finish is TokenFinish.STOP]


async def all_answers(
    watched: Watched, form: Any, count: int, **fields: Any
) -> list[tuple[str, TokenFinish | None]]:
    text = grammar_text(Constraint(ConstraintKind.STRUCTURAL_TAG, form, "tool_choice"))
    assert await watched.engine.check_grammar(text) == ""
    return await asyncio.gather(
        *(answer(watched, request(text, seed, 400, **fields)) for seed in range(count))
    )


@every_form
async def test_forced_calls_follow_their_schemas(
    demo: Watched, dialect: ToolDialect | CombinedDialect, form: CallForm
) -> None:
    ended = await answers(demo, form.forced(TOOLS, parallel=False), 12)

    assert len(ended) > 4
    for text in ended:
        content, [(name, arguments)] = parsed(dialect, text, 1)
        assert (content, [(name, arguments)]) == parsed(dialect, text, len(text))
        assert content == ""
        jsonschema.validate(json.loads(arguments), SCHEMAS[name])


@every_form
async def test_several_calls_may_be_forced(
    demo: Watched, dialect: ToolDialect | CombinedDialect, form: CallForm
) -> None:
    said = await all_answers(demo, form.forced(TOOLS[:1], parallel=True), 12)

    found = []
    for text, finish in said:
        content, calls = parsed(dialect, text, 1)
        # Once it calls, the model hardly ends: the last call may be cut off.
        whole = calls if finish is TokenFinish.STOP else calls[:-1]
        assert content == "" or finish is not TokenFinish.STOP
        for name, arguments in whole:
            jsonschema.validate(json.loads(arguments), SCHEMAS[name])
        found.append(len(whole))
    assert max(found) > 1


@every_form
async def test_calls_that_the_model_opens_follow_their_schemas(
    demo: Watched, dialect: ToolDialect | CombinedDialect, form: CallForm
) -> None:
    if not form.trigger:
        pytest.skip("nothing tells that a call was opened")
    # The demo model opens calls of its own dialect only.
    opened = form.free(TOOLS, parallel=False) | {"at_least_one": True}

    ended = await answers(demo, opened, 12)

    assert len(ended) > 4
    for text in ended:
        content, [(name, arguments)] = parsed(dialect, text, 1)
        assert content == ""
        jsonschema.validate(json.loads(arguments), SCHEMAS[name])
