"""Random JSON Schemas whose keywords stand together as nobody would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

NAMES = ("a", "b", "x1", 'q"t', "ß1", "long name")
BOUNDS = (0, 1, -1, 0.5, 2.5, -3.75, 10, 100, 99.99, 1e-7, -20)
VALUES = (1, 1.0, 2, 0, True, False, None, "a", "abc", "ß1", "", 2.5, [1], {"a": 1}, -3.75)
PATTERNS = (
    *("^[a-z]{2,5}$", "^a", "b$", "[0-9]+", "^.*$", "^(x|yy)+z?$", r"^\w+\s\W$", "", "ß1"),
    *(r"^[^\d\"]+$", r'^"\\$', "^[ -~]*$", r"\S\D", "^a|b$", "^a{0,3}b{2}c*$", r"^[\w.-]+$"),
)
UNIQUE: tuple[dict[str, Any], ...] = (
    {"enum": [1, True, "a", 1.0, None, 2]},
    {"type": "boolean"},
    {"enum": ["a", "b", "c", "d"]},
)
TYPES = ("boolean", "null", "string", "integer", "object", "array", ["string", "number", "null"])


def combined_schema(rng: random.Random) -> dict[str, Any]:
    """A schema; it may be that no value follows it."""
    definitions = {name: _schema(rng, 2) for name in "ABC"}
    return {**_schema(rng, 3), "$defs": definitions}


def _schema(rng: random.Random, depth: int) -> dict[str, Any]:
    if depth <= 0 or rng.random() < 0.3:
        return rng.choice((_number, _string, _string, _constants, _type))(rng)
    schema = rng.choice((_object, _object, _array, _options, _all, _reference))(rng, depth - 1)
    return {**_schema(rng, depth - 1), **schema} if rng.random() < 0.3 else schema


def _with(rng: random.Random, schema: dict[str, Any], **keywords: tuple[float, Any]) -> None:
    """Give keywords to a schema, each with some probability."""
    schema |= {key: value for key, (share, value) in keywords.items() if rng.random() < share}


def _object(rng: random.Random, depth: int) -> dict[str, Any]:
    names = rng.sample(NAMES, rng.randint(0, 4))
    schema: dict[str, Any] = {"properties": {name: _schema(rng, depth) for name in names}}
    _with(
        rng,
        schema,
        type=(0.8, rng.choice(("object", ["object", "null"]))),
        required=(0.7, rng.sample(NAMES, rng.randint(0, 2))),
        additionalProperties=(0.4, rng.choice((False, True, _schema(rng, depth)))),
        patternProperties=(0.2, {rng.choice(("^x", "1$", "^[a-z]+$", "b")): _schema(rng, depth)}),
        minProperties=(0.2, rng.randint(0, 3)),
        maxProperties=(0.2, rng.randint(0, 4)),
        propertyNames=(0.1, rng.choice(({"enum": ["a", "b", "z"]}, {"pattern": "^[a-c]$"}))),
        unevaluatedProperties=(0.1, False),
    )
    return schema


def _array(rng: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"items": _schema(rng, depth)}
    if rng.random() < 0.3:
        schema = {"uniqueItems": True, "items": rng.choice(UNIQUE)}
    _with(
        rng,
        schema,
        type=(0.8, "array"),
        prefixItems=(0.3, [_schema(rng, depth) for _ in range(rng.randint(0, 2))]),
        minItems=(0.4, rng.randint(0, 3)),
        maxItems=(0.6, rng.randint(0, 4)),
    )
    return schema


def _options(rng: random.Random, depth: int) -> dict[str, Any]:
    options = [_schema(rng, depth) for _ in range(rng.randint(1, 3))]
    return {rng.choice(("anyOf", "oneOf")): options}


def _all(rng: random.Random, depth: int) -> dict[str, Any]:
    return {"allOf": [_schema(rng, depth) for _ in range(rng.randint(1, 3))]}


def _reference(rng: random.Random, depth: int) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{rng.choice('ABC')}"} if depth else _type(rng)


def _number(rng: random.Random) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    near = round(rng.uniform(-10, 10), rng.randint(0, 4))
    _with(
        rng,
        schema,
        type=(0.85, rng.choice(("number", "integer", ["number", "null"]))),
        minimum=(0.3, rng.choice((*BOUNDS, near))),
        maximum=(0.3, rng.choice((*BOUNDS, near))),
        exclusiveMinimum=(0.3, rng.choice(BOUNDS)),
        exclusiveMaximum=(0.3, rng.choice(BOUNDS)),
        multipleOf=(0.1, rng.choice((1, 2, 5, 0.5, 3, 10, 0.1, 2.0))),
    )
    return schema


def _string(rng: random.Random) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    _with(
        rng,
        schema,
        type=(0.9, "string"),
        minLength=(0.3, rng.randint(0, 5)),
        maxLength=(0.4, rng.randint(0, 9)),
        pattern=(0.3, rng.choice(PATTERNS)),
        format=(0.1, rng.choice(("date", "uuid", "ipv4", "color"))),
    )
    return schema


def _constants(rng: random.Random) -> dict[str, Any]:
    values = rng.sample(VALUES, rng.randint(1, 5))
    schema: dict[str, Any] = {"enum": values} if rng.random() < 0.7 else {"const": values[0]}
    _with(rng, schema, type=(0.3, rng.choice(TYPES)), minimum=(0.1, 1))
    return schema


def _type(rng: random.Random) -> dict[str, Any]:
    return {"type": rng.choice(TYPES)}
