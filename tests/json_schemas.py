"""Random JSON Schemas: what people write, and now and then what they should not."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import jsonschema

if TYPE_CHECKING:
    import random

DEPTH = 3
WORDS = ("name", "age", "city", "tags", "ok", "unit", "Stück", "a b", "日本")
PATTERNS = (
    "^[a-z]{2,5}$",
    "[0-9]{3}-[0-9]{4}",
    "^(red|green|blue)$",
    r"^\d{4}-\d{2}$",
    "^[A-Z][a-z]*$",
    "a+b?",
    "^[^a]{1,4}$",
    "^.{2,6}$",
)
FORMATS = ("date", "time", "date-time", "email", "uuid", "ipv4", "hostname", "uri", "color")
# Each is wrong, or nothing that the compiler would enforce.
ODD: tuple[dict[str, Any], ...] = (
    {"type": "strin"},
    {"not": {"type": "string"}},
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    {"type": "integer", "multipleOf": 3},
    {"type": "integer", "minimum": 9, "maximum": 3},
    {"type": "string", "minLength": 4, "maxLength": 1},
    {"type": "string", "pattern": "(?=a)b"},
    {"type": "string", "pattern": "[a-"},
    {"type": "string", "pattern": "^a", "minLength": 3},
    {"allOf": [{"type": "integer"}, {"minimum": 3}]},
    {"anyOf": [{"required": ["a"]}], "type": "object"},
    {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    {"if": {"type": "integer"}, "then": {"minimum": 3}},
    {"$ref": "#/$defs/missing"},
    {"$ref": "https://example.com/schema.json"},
    {"type": "array", "contains": {"type": "integer"}},
    {"enum": []},
    {"enum": ["a", 1], "type": "string"},
    {"minimum": 3},
    {"type": "object", "required": ["unknown"], "additionalProperties": False},
    {"type": "object", "properties": {"Größe": {"type": "integer"}}},
    {"type": "object", "properties": {'quo"te': {"type": "integer"}}},
    {"type": "object", "propertyNames": {"maxLength": 2}},
    {"type": "number", "minimum": 0.5, "maximum": 2.5},
    {"type": "string", "pattern": "^[ -~]+$"},
)


def random_schema(rng: random.Random) -> dict[str, Any]:
    """A schema."""
    schema = _schema(rng, DEPTH)
    if rng.random() < 0.2:
        named = {
            "thing": _object(rng, 1),
            "tree": {
                "type": "object",
                "properties": {
                    "value": _scalar(rng),
                    "children": {
                        "type": "array",
                        "items": {"$ref": "#/$defs/tree"},
                        "maxItems": 2,
                    },
                },
                "required": ["value"],
                "additionalProperties": False,
            },
        }
        schema = {
            "$defs": named,
            "type": "object",
            "properties": {
                "first": {"$ref": f"#/$defs/{rng.choice(('thing', 'tree'))}"},
                "second": schema,
            },
            "required": ["first"],
            "additionalProperties": False,
        }
    return schema


def _schema(rng: random.Random, depth: int) -> dict[str, Any]:
    if rng.random() < 0.04:
        return dict(rng.choice(ODD))
    make = rng.choice([_scalar] * 3 + ([_object, _object, _array, _union] if depth else []))
    schema = make(rng) if make is _scalar else make(rng, depth - 1)
    if rng.random() < 0.2:
        schema |= {"title": "T", "description": "what it is", "default": None}
    return schema


def _scalar(rng: random.Random) -> dict[str, Any]:
    makers = (_string, _string, _integer, _number, _enum, _enum)
    simple = ({"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]})
    return dict(rng.choice(simple)) if rng.random() < 0.2 else rng.choice(makers)(rng)


def _string(rng: random.Random) -> dict[str, Any]:
    shortest = rng.randint(0, 4)
    return rng.choice(
        (
            {"type": "string"},
            {"type": "string", "maxLength": rng.randint(1, 12)},
            {"type": "string", "minLength": shortest, "maxLength": shortest + rng.randint(0, 8)},
            {"type": "string", "pattern": rng.choice(PATTERNS)},
            {"type": "string", "format": rng.choice(FORMATS)},
        )
    )


def _integer(rng: random.Random) -> dict[str, Any]:
    low = rng.randint(-1000, 1000)
    schema: dict[str, Any] = {"type": "integer"}
    if rng.random() < 0.5:
        schema[rng.choice(("minimum", "exclusiveMinimum"))] = low
    if rng.random() < 0.5:
        schema[rng.choice(("maximum", "exclusiveMaximum"))] = low + rng.randint(2, 5000)
    return schema


def _number(rng: random.Random) -> dict[str, Any]:
    low = round(rng.uniform(-100, 100), rng.randint(0, 3))
    schema: dict[str, Any] = {"type": "number"}
    if rng.random() < 0.1:
        schema[rng.choice(("minimum", "exclusiveMinimum"))] = low
    elif rng.random() < 0.5:
        schema[rng.choice(("minimum", "maximum"))] = 0
    return schema


def _enum(rng: random.Random) -> dict[str, Any]:
    values: list[Any] = rng.sample(["red", "Größe", "ü", 'a"b', 1, 2.5, True, None, "", [1]], 3)
    strings = [value for value in values if isinstance(value, str)]
    return rng.choice(
        (
            {"enum": values},
            {"const": values[0]},
            {"type": "string", "enum": strings or ["only"]},
            {"type": "string", "const": "fixed"},
        )
    )


def _object(rng: random.Random, depth: int) -> dict[str, Any]:
    names = rng.sample(WORDS, rng.randint(0, 4))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema(rng, depth) for name in names},
        "required": rng.sample(names, rng.randint(0, len(names))),
    }
    if rng.random() < 0.7:
        schema["additionalProperties"] = rng.choice((False, False, True, {"type": "integer"}))
    if rng.random() < 0.1:
        schema["minProperties"] = rng.randint(0, len(names))
    if rng.random() < 0.1:
        schema["maxProperties"] = rng.randint(len(schema["required"]), 6)
    if not names and rng.random() < 0.5:
        schema = {"type": "object", "patternProperties": {"^[a-z]+$": _scalar(rng)}}
    return schema


def _array(rng: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": _schema(rng, depth)}
    if rng.random() < 0.3:
        schema["prefixItems"] = [_schema(rng, depth) for _ in range(rng.randint(1, 2))]
    fewest = rng.randint(0, 2)
    if rng.random() < 0.5:
        schema["minItems"] = fewest
    if rng.random() < 0.6:
        schema["maxItems"] = fewest + rng.randint(0, 3)
    return schema


def _union(rng: random.Random, depth: int) -> dict[str, Any]:
    options = [_schema(rng, depth) for _ in range(rng.randint(1, 3))]
    kinds: list[dict[str, Any]] = [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, "value": _schema(rng, depth)},
            "required": ["kind", "value"],
            "additionalProperties": False,
        }
        for kind in ("a", "b")
    ]
    return rng.choice(({"anyOf": options}, {"oneOf": kinds}, {"allOf": options[:1]}))


def validate(value: Any, schema: Any) -> None:
    """Do as `jsonschema.validate`, which checks the schema anew for every value.

    Raises:
        jsonschema.ValidationError: The value does not follow the schema.
        jsonschema.SchemaError: The schema is none.
    """
    _validator(json.dumps(schema)).validate(value)


@functools.cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema))
    return jsonschema.Draft202012Validator(json.loads(schema))
