"""Random schemas, with something that cannot be enforced at random places in them."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.grammar.relaxation import Relaxation
from tests.effort import scaled
from tests.grammars import unenforced
from tests.json_schemas import random_schema
from tests.unit.relaxed_schemas import LOOKS
from tests.unit.test_relaxation import WRITERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.grammar.relaxation import Write

BAD: list[dict[str, Any]] = [
    {"not": {"type": "null"}},
    {"pattern": LOOKS},
    {"contains": {}},
    {"if": {"type": "object"}, "then": {"required": ["zz"]}},
    {"type": "strin"},
    {"multipleOf": 7},
    {"enum": []},
    {"$ref": "#/nowhere"},
    {"minProperties": 9},
    {"uniqueItems": True},
    {"required": ["qq"], "additionalProperties": False},
]


def schemas(schema: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(schema, dict):
        return
    yield schema
    for key in ("properties", "patternProperties"):
        for child in schema.get(key, {}).values():
            yield from schemas(child)
    for key in ("items", "additionalProperties"):
        yield from schemas(schema.get(key))
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for child in schema.get(key, []):
            yield from schemas(child)


def spoilt_tool(rng: random.Random) -> Any:
    inner: Any = random_schema(rng)
    definitions = inner.pop("$defs", {})
    for _ in range(rng.randint(1, 3)):
        rng.choice([*schemas(inner)]).update(rng.choice(BAD))
    tool = {
        "type": "object",
        "properties": {"one": {"type": "boolean"}, "two": inner},
        "required": ["one", "two"],
        "$defs": definitions,
    }
    # Nothing stands there twice, as in what callers send.
    return json.loads(json.dumps(tool))


def found(schema: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        schema = schema[int(name)] if isinstance(schema, list) else schema[name]
    return schema


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_whatever_cannot_be_enforced_is_left_out_where_it_stands(write: Write) -> None:
    for seed in range(scaled(100)):
        schema = spoilt_tool(random.Random(seed))
        relaxation = Relaxation(schema)

        grammar = write(schema, relaxation)

        assert "one" in grammar
        assert "two" in grammar
        assert bool(relaxation.places.left_out()) == bool(unenforced(schema, write))
        for pointer in relaxation.places.left_out():
            found(schema, pointer)
