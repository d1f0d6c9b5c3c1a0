"""What of JSON Schema the compiler does not enforce is refused, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat_server.api.schema_support import unenforced

CASES: list[tuple[Any, str]] = [
    ({"not": {"type": "string"}}, "not"),
    ({"if": {}, "then": {}}, "if"),
    ({"type": "array", "uniqueItems": True}, "uniqueItems"),
    ({"type": "array", "contains": {}}, "contains"),
    ({"type": "integer", "multipleOf": 2}, "multipleOf"),
    ({"type": "object", "propertyNames": {"maxLength": 2}}, "propertyNames"),
    ({"type": "object", "dependentRequired": {"a": ["b"]}}, "dependentRequired"),
    ({"type": "object", "required": ["a"]}, "required"),
    ({"type": "object", "minProperties": 2}, "minProperties"),
    ({"type": "object", "properties": {'a"b': {}}}, "a property whose name"),
    ({"properties": {"a": {}}, "patternProperties": {"b": {}}}, "patternProperties"),
    ({"minimum": 3}, "minimum without a type"),
    ({"type": "number", "minimum": 0, "maximum": 1}, "maximum of a number"),
    ({"type": "number", "minimum": 5}, "minimum of a number"),
    ({"type": ["number", "null"], "maximum": 3}, "maximum of a number"),
    ({"type": "string", "pattern": "a", "minLength": 3}, "pattern beside minLength"),
    ({"type": "string", "format": "date", "maxLength": 3}, "maxLength beside format"),
    ({"type": "string", "pattern": "[ -~]"}, "a pattern that asks for a quotation mark"),
    ({"type": "string", "pattern": "a$|b"}, "a pattern that has an anchor inside"),
    ({"$ref": "#"}, "a $ref to no schema of its own"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}, "a $ref to no schema of its own"),
    ({"$ref": "https://example.com/a.json"}, "a $ref to no schema of its own"),
    ({"$ref": "#/$defs/a", "minimum": 3, "$defs": {"a": {}}}, "minimum beside $ref"),
    ({"type": "object", "anyOf": [{}]}, "type beside anyOf"),
    ({"allOf": [{"type": "integer"}, {"type": "number"}]}, "allOf of several"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf of schemas"),
    ({"oneOf": [{"const": 1}, {"type": "integer"}]}, "oneOf of schemas"),
    ({"enum": ["a", 1], "type": "string"}, "enum with values of another type"),
    ({"enum": ["a"], "minLength": 3}, "minLength beside enum"),
    ({"enum": ["Größe", 1]}, "enum with a letter such as ß"),
]


@pytest.mark.parametrize(("schema", "part"), CASES)
def test_what_would_go_unenforced_is_refused(schema: Any, part: str) -> None:
    assert f"uses {part}" in unenforced(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"title": "T", "description": "d", "default": 1, "examples": [1], "x-other": {"not": 1}},
        {"type": "object", "properties": {"not": {"type": "string"}}, "required": ["not"]},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        {"type": "object", "properties": {"a": {}}, "minProperties": 1},
        {"type": "object", "patternProperties": {"^[a-z]+$": {"type": "integer"}}},
        {"type": "integer", "exclusiveMinimum": 3},
        {"type": "number", "minimum": 0},
        {"type": "string", "minLength": 1, "maxLength": 5},
        {"type": "string", "pattern": "^.{2,3}$"},
        {"type": "string", "format": "color", "maxLength": 3},
        {"type": "array", "items": {}, "uniqueItems": False},
        {"enum": ["a", "b"], "type": "string"},
        {"const": 1, "type": "integer"},
        {"enum": ["Größe", "x"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "integer"}}},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"oneOf": [{"const": "a"}, {"const": "b"}, {"type": "null"}]},
        {
            "oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
            "discriminator": {"propertyName": "kind"},
            "$defs": {
                kind: {
                    "type": "object",
                    "properties": {"kind": {"const": kind}},
                    "required": ["kind"],
                }
                for kind in ("a", "b")
            },
        },
        # Recursion that can end.
        {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        },
        # No schema at all: the compiler says so.
        {"type": "nonsense", "enum": 3, "properties": 3, "items": [1]},
    ],
)
def test_what_is_enforced_passes(schema: Any) -> None:
    assert unenforced(schema) == ""


def test_the_place_is_named() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"not": {}}}}}

    assert unenforced(schema) == "uses not at /properties/a/items, which cannot be enforced"
