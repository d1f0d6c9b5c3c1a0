"""What of JSON Schema is not enforced is refused, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.grammars import unenforced

ENDLESS = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
CASES: list[tuple[Any, str]] = [
    ({"not": {"type": "string"}}, "uses not"),
    ({"if": {}, "then": {}}, "uses if"),
    ({"type": "array", "contains": {}}, "uses contains"),
    ({"type": "object", "dependentRequired": {"a": ["b"]}}, "uses dependentRequired"),
    ({"type": "array", "uniqueItems": True}, "uses uniqueItems without an enum of the items"),
    ({"type": "integer", "multipleOf": 7}, "uses a multipleOf with more than"),
    ({"type": "number", "multipleOf": 0.03, "minimum": 0}, "uses a multipleOf with more than"),
    ({"type": "object", "minProperties": 2}, "uses minProperties where a property may occur twice"),
    ({"patternProperties": {"a": {}, "b": {}}}, "uses patternProperties of several patterns"),
    ({"type": "string", "pattern": "^ab$", "maxLength": 1}, "combined with its length limits"),
    ({"type": "string", "format": ["date"]}, "uses a format that is not a string"),
    ({"type": "array", "minItems": 2**63}, "has a minItems that is too large"),
    ({"type": "string", "pattern": "a", "format": "date"}, "a pattern that no string matches"),
    ({"allOf": [{"pattern": "^a"}, {"pattern": "^b"}], "type": "string"}, "no string matches"),
    ({"type": "string", "pattern": "\x1f|a$|(b$)"}, "a pattern that has an anchor inside"),
    ({"type": "string", "pattern": "(?=a)b"}, "a pattern that no string matches"),
    ({"type": "string", "pattern": "(?<!a)b"}, "a pattern that uses a lookbehind"),
    ({"type": "string", "pattern": "(?:(?!a)b?)*"}, "a pattern that has a lookahead inside"),
    ({"type": "string", "pattern": "^(?=.*a).{900}$"}, "a pattern that is too large to be"),
    ({"type": "string", "pattern": f"^(?=a){'a?' * 900}$"}, "a pattern that is too large to be"),
    ({"type": "string", "pattern": r"(a)\1"}, "a pattern that has a back reference"),
    ({"type": "string", "pattern": r"\p{L}"}, "an unknown escape"),
    ({"type": "string", "pattern": "[a-"}, "a pattern that has an unclosed bracket"),
    ({"type": "string", "pattern": "(" * 5000}, "nests parentheses deeper than 100"),
    ({"$ref": "#"}, "uses a circular $ref"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}, "uses a circular $ref"),
    ({"$ref": "https://example.com/a.json"}, "uses a $ref to no schema of its own"),
    ({"$ref": "#/$defs/a"}, "uses a $ref to no schema of its own"),
    ({"$ref": "#/$defs/a%20b", "$defs": {"a%20b": {}}}, "uses a $ref to no schema of its own"),
    ({"$ref": "#a", "anyOf": [{"$anchor": "a"}, {"$anchor": "a"}]}, "uses a $ref to no schema"),
    (
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        "uses oneOf of schemas that may overlap",
    ),
    ({"oneOf": [{"const": 1}, {"type": "integer"}]}, "uses oneOf of schemas that may overlap"),
    ({"oneOf": [{"type": "object"}, {"properties": {"a": {}}}]}, "uses oneOf of schemas that"),
    ({"enum": [[1]], "minItems": 1}, "uses const or enum beside keywords"),
    ({"type": "strin"}, "uses the unknown type 'strin'"),
    ({"properties": 3}, "has properties that are not an object"),
    ({"items": [{}], "prefixItems": [{}]}, "uses an array as items beside prefixItems"),
    ({"items": [{"type": "strin"}]}, "uses the unknown type 'strin' at /items/0"),
    ({"items": [{}], "additionalItems": {"if": {}}}, "uses if at /additionalItems"),
    ({"minimum": True}, "uses minimum with a value that is not a number"),
    ({"exclusiveMinimum": "3"}, "uses exclusiveMinimum with a value that is not a number"),
    ({"required": "a"}, "uses required with a value that is not an array"),
    ({"$ref": 5}, "uses a $ref that is not a string"),
    ({"properties": {"a": 3}}, "has no schema at /properties/a"),
    (False, "no value satisfies"),
    ({"not": {}}, "no value satisfies"),
    ({"not": {"description": "anything"}}, "no value satisfies"),
    ({"required": ["a"], "properties": {"a": {"not": {}}}, "type": "object"}, "no value satisfies"),
    ({"enum": []}, "no value satisfies"),
    ({"type": "integer", "minimum": 9, "maximum": 3}, "no value satisfies"),
    ({"type": "string", "minLength": 4, "maxLength": 1}, "no value satisfies"),
    ({"allOf": [{"type": "integer"}, {"type": "string"}]}, "no value satisfies"),
    ({"required": ["a"], "additionalProperties": False, "type": "object"}, "no value satisfies"),
    (
        {"type": "number", "exclusiveMinimum": 1, "maximum": 1},
        "no value satisfies",
    ),
    (ENDLESS, "no value satisfies"),
]


@pytest.mark.parametrize(("schema", "part"), CASES)
def test_what_would_go_unenforced_is_refused(schema: Any, part: str) -> None:
    assert part in unenforced(schema)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "object"},
        {"title": "T", "description": "d", "default": 1, "examples": [1], "x-other": {"not": 1}},
        {"type": "object", "properties": {"not": {"type": "string"}}, "required": ["not"]},
        {"type": "object", "properties": {'a"b': {}}, "additionalProperties": False},
        {"type": "object", "properties": {"a": {}}, "required": ["b"]},
        {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}},
        {"properties": {"a": {}}, "patternProperties": {"b": {}}},
        {"minimum": 3},
        {"type": "array", "items": {}, "additionalItems": {"if": {}}},
        {"not": False},
        {"type": "object", "properties": {"a": {"not": {}}, "b": {"not": True}, "c": False}},
        {"anyOf": [{"not": {}}, {"type": "null"}]},
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": ["number", "null"], "exclusiveMaximum": 3.5},
        {"type": "integer", "multipleOf": 5},
        {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 100},
        {"type": "string", "pattern": "^[A-Z]{3}$", "minLength": 3, "maxLength": 3},
        {"type": "string", "pattern": "^[a-z0-9-]+$", "maxLength": 20},
        {"type": "string", "pattern": "^[ -~]+$"},
        {"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083},
        {"type": "string", "format": "email", "maxLength": 254},
        {"type": "string", "format": "color", "pattern": "^#[0-9a-f]{6}$"},
        {"type": "array", "items": {}, "uniqueItems": False},
        {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
        {"enum": ["a", 1], "type": "string"},
        {"enum": ["a", "abcd"], "minLength": 3},
        {"enum": ["Größe", 1]},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
        {"allOf": [{"type": "integer"}, {"minimum": 3}]},
        {"$ref": "#/$defs/a", "minimum": 3, "$defs": {"a": {"type": "integer"}}},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}},
        {"$ref": "#/$defs/My Type", "$defs": {"My Type": {"type": "integer"}}},
        {"$ref": "#/$defs/My%20Type", "$defs": {"My Type": {"type": "integer"}}},
        {"$ref": "#/$defs/List%3CItem%3E", "$defs": {"List<Item>": {"type": "integer"}}},
        {"$ref": "#/definitions/%C3%A9~1%7e0", "definitions": {"é/~": {"type": "integer"}}},
        {"$ref": "#whole", "$defs": {"a": {"$anchor": "whole", "type": "integer"}}},
        {"$ref": "Tree", "$defs": {"a": {"$id": "Tree", "type": "integer"}}},
        {"$ref": "Tree#/$defs/b", "$defs": {"a": {"$id": "Tree", "$defs": {"b": {}}}}},
        {"oneOf": [{"const": "a"}, {"const": "b"}, {"type": "null"}]},
        {"oneOf": [{"type": "number", "maximum": 0}, {"type": "number", "exclusiveMinimum": 0}]},
        {"oneOf": [{"properties": {k: {}}, "required": [k], "type": "object"} for k in "ab"]},
        {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
        # Recursion that can end.
        {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}},
        {"anyOf": [ENDLESS, {"type": "null"}]},
    ],
)
def test_what_is_enforced_passes(schema: Any) -> None:
    assert unenforced(schema) == ""


def test_the_place_is_named() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"not": {"type": "null"}}}},
    }

    assert unenforced(schema) == "uses not at /properties/a/items, which cannot be enforced"


NUMBERED = {str(number): {"enum": [*range(number, number + 500)]} for number in range(2)}
PROPERTIES = [
    {"properties": {f"f{index}": {"minimum": number} for index in range(500)}}
    for number in range(2)
]


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": f"#/$defs/{index % 2}"} for index in range(9000)], "$defs": NUMBERED},
        {"allOf": PROPERTIES * 400},
        {"allOf": [{"anyOf": [{"pattern": f"^{n}{m}"} for m in range(200)]} for n in range(20)]},
        {"oneOf": [{"const": number} for number in range(1000)]},
        {"properties": {f"f{n}": {"pattern": f"^(?!a{{{n}}})"} for n in range(100)}},
        {"pattern": f"^(?=.)[{''.join(chr(0x4E00 + 2 * index) for index in range(9000))}]*$"},
        {"pattern": f"^(?=a){'a' * 60000}$"},
        {"allOf": [{"pattern": f"^(a|b)*{char}(a|b){{300}}$"} for char in "ab"], "type": "string"},
        {"properties": {f"f{index}": {} for index in range(1000)}, "minProperties": 500},
        {
            "$ref": "#/$defs/0",
            "$defs": {str(number): {"$ref": f"#/$defs/{number + 1}"} for number in range(6000)},
        },
        {
            "$ref": "#/$defs/0",
            "$defs": {
                str(number): {"anyOf": [{"$ref": f"#/$defs/{number + 1}"}] * 2}
                for number in range(40)
            }
            | {"40": {}},
        },
    ],
)
def test_what_would_grow_without_end_is_refused(schema: Any) -> None:
    assert "cannot be enforced" in unenforced(schema)


def test_schemas_that_are_used_in_many_places_are_written_once() -> None:
    definitions: Any = {
        f"d{number}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/d{number + 1}"} for name in "abcd"},
            "required": list("abcd"),
        }
        for number in range(40)
    }

    assert unenforced({"$defs": {**definitions, "d40": {}}, "$ref": "#/$defs/d0"}) == ""
