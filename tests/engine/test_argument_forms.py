"""Arguments that are written one by one, held to random schemas on the real engine."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from ovchat_server.chat.dialects.registry import TOOL_DIALECTS
from ovchat_server.domain.chat import Tool
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.generation import GenerationRequest, Sampling, TokenFinish
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.grammar.formats import grammar_text
from tests.engine.conftest import Watched
from tests.engine.test_structured_output import PROMPT, TOKENIZER, answer, demo_spec
from tests.grammars import called_tool, unenforced
from tests.json_schemas import random_schema, validate
from tests.unit.dialects.reading import read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.chat.dialects.base import CombinedDialect, ToolDialect

    Dialect = ToolDialect | CombinedDialect

FAMILIES = ("qwen3_coder", "glm", "minicpm", "gemma", "pythonic", "lfm2")
DIALECTS = {dialect.name: dialect for dialect in TOOL_DIALECTS if dialect.name in FAMILIES}
NAME = "plan-trip.v2"
SEEDS = 6
# So hot that the model takes every way there is.
HOT = 3
WORDS = {"type": "string", "enum": ["red", "green"]}
SCHEMAS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "only optional": {name: {"type": "boolean"} for name in "abcde"},
    "first optional": {
        "a": {"type": "boolean"},
        "b": {"type": "null"},
        "c!": WORDS,
        "d": {"type": "boolean"},
    },
    "strings": {
        "enum": {"enum": ["Größe", "a|b", "'x' & \"y\"", "<b>", "</parameter>", "1", " "]},
        "const!": {"const": "a\nb"},
        "marks!": {"const": "]]>&lt;"},
        "pattern!": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"},
        "tag": {"type": "string", "pattern": "^<[a-z]{1,3}>&$"},
        "short!": {"type": "string", "minLength": 1, "maxLength": 6},
        "date!": {"type": "string", "format": "date"},
        "host": {"type": "string", "format": "ipv4"},
    },
    "unions": {
        "word!": {"type": ["string", "null"], "maxLength": 5},
        "letter!": {
            "anyOf": [{"type": "number", "maximum": 0}, {"type": "string", "maxLength": 1}]
        },
        "either!": {"anyOf": [{"type": "integer", "minimum": 5, "maximum": 99}, WORDS]},
        "text": {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "string", "maxLength": 4}]},
        "mixed": {"enum": ["1", 1, "true", False, None, "none"]},
        "list": {"anyOf": [{"type": "array", "items": {"type": "null"}, "maxItems": 1}, WORDS]},
    },
    "nested": {
        "at!": {
            "type": "object",
            "properties": {
                "z": {"type": "integer", "exclusiveMinimum": -3, "maximum": 20},
                "a b": WORDS,
                "ok": {"type": "boolean"},
            },
            "required": ["ok"],
        },
        "pairs!": {
            "type": "array",
            "prefixItems": [WORDS, {"type": "number", "minimum": 0}],
            "items": {"type": "null"},
            "maxItems": 3,
        },
        "tree": {"$ref": "#/$defs/tree"},
        "map": {
            "type": "object",
            "patternProperties": {"^[a-z]{1,2}$": {"type": "boolean"}},
            "maxProperties": 2,
            "additionalProperties": False,
        },
    },
}
TREE = {
    "type": "object",
    "properties": {
        "name": WORDS,
        "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
async def demo() -> AsyncIterator[Watched]:
    watched = Watched(demo_spec(kv_blocks=256))
    watched.engine.start()
    await watched.until(ModelState.READY)
    yield watched
    await watched.engine.close()


def schema_of(marked: dict[str, Any]) -> dict[str, Any]:
    """A tool's schema; properties with an exclamation mark are required."""
    return {
        "type": "object",
        "properties": {name.rstrip("!"): child for name, child in marked.items()},
        "required": [name.rstrip("!") for name in marked if name.endswith("!")],
        "additionalProperties": False,
        "$defs": {"tree": TREE},
    }


def random_tool(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    while True:
        inner = random_schema(rng)
        definitions = inner.pop("$defs", {})
        schema = (
            inner | {"$defs": definitions}
            if inner.get("type") == "object" and rng.random() < 0.7
            else {
                "type": "object",
                "properties": {"one": {"type": "boolean"}, "two": inner, "a b": WORDS},
                "required": rng.sample(["one", "two", "a b"], rng.randint(0, 3)),
                "additionalProperties": False,
                "$defs": definitions,
            }
        )
        if not unenforced(schema) and is_schema(schema):
            return schema


def is_schema(schema: dict[str, Any]) -> bool:
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return False
    return True


async def called(watched: Watched, dialect: Dialect, schema: dict[str, Any], count: int) -> Any:
    """The arguments of forced calls, as a parser that trusts reads them."""
    assert dialect.format is not None
    tool = called_tool(dialect.format, NAME, schema)
    form = dialect.format.forced([tool], parallel=False)
    text = grammar_text(form)
    assert await watched.engine.check_grammar(text) == ""
    tokens = tuple(TOKENIZER.encode(PROMPT))
    said = await asyncio.gather(
        *(
            answer(
                watched,
                GenerationRequest(Prompt(tokens), 600, Sampling(HOT, seed=seed), grammar=text),
            )
            for seed in range(count)
        )
    )
    offered = (Tool(NAME, None, schema),)
    found = []
    for written in [text for text, finish in said if finish is TokenFinish.STOP]:
        result = read(dialect, [written], offered, enforced=True)
        assert result == read(dialect, written, offered, enforced=True)
        assert result.content == "", written
        [(name, arguments)] = result.calls
        assert name == NAME
        try:
            validate(json.loads(arguments), schema)
        except (ValueError, jsonschema.ValidationError) as error:
            pytest.fail(f"{schema}: {written}: {error}")
        found.append(json.loads(arguments))
    return found


every_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


# A dialect and a kind of schema at a time, each once; the others together take long.
SECONDS_EACH = ("qwen3_coder", "glm")
PAIRS = [
    pytest.param(dialect, name, id=f"{dialect.name}-{name}", marks=marks)
    for row, dialect in enumerate(DIALECTS.values())
    for column, name in enumerate(SCHEMAS)
    for short in (row % len(SCHEMAS) == column and dialect.name not in SECONDS_EACH,)
    for marks in ([] if short else [pytest.mark.slow],)
]


@pytest.mark.parametrize(("dialect", "name"), PAIRS)
async def test_arguments_follow_the_schema(demo: Watched, dialect: Dialect, name: str) -> None:
    schema = schema_of(SCHEMAS[name])

    found = await called(demo, dialect, schema, 16)

    assert len(found) > 4
    assert all(list(item) == in_order(item, dialect, schema) for item in found)
    if len(SCHEMAS[name]) > 1:
        assert len({frozenset(item) for item in found}) > 1


def in_order(arguments: dict[str, Any], dialect: Dialect, schema: dict[str, Any]) -> list[str]:
    names = [name for name in schema["properties"] if name in arguments]
    return sorted(names) if dialect.name == "gemma" else names


@pytest.mark.slow
@every_dialect
async def test_arguments_follow_random_schemas(demo: Watched, dialect: Dialect) -> None:
    ended = 0
    for seed in range(SEEDS):
        ended += len(await called(demo, dialect, random_tool(seed), 4))

    assert ended > SEEDS
