"""Schemas of which something cannot be enforced, and what is left of them."""

from __future__ import annotations

from typing import Any

LOOKS = "^(?<=a)"
WORD = {"enum": ["red", "green"]}
NOWHERE = {"$ref": "https://example.com/a.json"}
ONE = {"properties": {"one": WORD}, "required": ["one"]}
TWO = {"properties": {"two": {"type": "null"}}, "required": ["two"]}
# Written by itself, not as what is the same elsewhere.
ANYTHING: dict[str, Any] = {"allOf": [{}]}
# A schema of a property, what of it is left out, and what is left.
CASES: dict[str, tuple[Any, list[str], Any]] = {
    "not": ({"type": "string", "not": WORD}, ["/not"], {"type": "string"}),
    "if": (
        {"type": "object", **ONE, "if": {}, "then": {}},
        ["/if"],
        {"type": "object", **ONE},
    ),
    "if, then and else": (
        {"type": "object", **ONE, "if": ONE, "then": TWO, "else": {"required": ["three"]}},
        ["/if"],
        {"type": "object", **ONE, "anyOf": [TWO, {"required": ["three"]}]},
    ),
    "then that cannot be enforced": (
        {"type": "object", **ONE, "if": ONE, "then": {**TWO, "not": ONE}},
        ["/if", "/then/not"],
        {"type": "object", **ONE, "anyOf": [TWO, {}]},
    ),
    "then without if": ({"type": "integer", "then": {}}, ["/then"], {"type": "integer"}),
    "dependentRequired": (
        {"type": "object", **ONE, "dependentRequired": {"one": ["two"]}},
        ["/dependentRequired"],
        {"type": "object", **ONE},
    ),
    "contains": (
        {"type": "array", "items": WORD, "contains": {"const": "red"}, "minContains": 1},
        ["/contains", "/minContains"],
        {"type": "array", "items": WORD},
    ),
    "uniqueItems": (
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "maxItems": 3},
        ["/uniqueItems"],
        {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
    ),
    "pattern": (
        {"type": "string", "pattern": LOOKS, "maxLength": 5},
        ["/pattern"],
        {"type": "string", "maxLength": 5},
    ),
    "pattern beside format": (
        {"type": "string", "format": "date", "pattern": "^x"},
        ["/format"],
        {"type": "string", "pattern": "^x"},
    ),
    "length beside pattern": (
        {"type": "string", "pattern": "^ab$", "maxLength": 1},
        ["/maxLength"],
        {"type": "string", "pattern": "^ab$"},
    ),
    "multipleOf": (
        {"type": "integer", "multipleOf": 7, "minimum": 0},
        ["/multipleOf"],
        {"type": "integer", "minimum": 0},
    ),
    "$ref": ({**NOWHERE, "type": "integer"}, ["/$ref"], {"type": "integer"}),
    "nothing but a $ref": (NOWHERE, ["/$ref"], ANYTHING),
    "type": ({"type": "strin", "enum": ["red"]}, ["/type"], {"enum": ["red"]}),
    "no schema": (3, [""], ANYTHING),
    "required and forbidden": (
        {"type": "object", "required": ["one"], "additionalProperties": False},
        ["/additionalProperties"],
        {"type": "object", "required": ["one"]},
    ),
    "no value": ({"type": "string", "enum": []}, ["/enum"], {"type": "string"}),
    "keywords of an array beside values": (
        {"enum": [[1]], "minItems": 1},
        ["/minItems"],
        {"enum": [[1]]},
    ),
    "several patternProperties": (
        {
            "type": "object",
            "patternProperties": {"^a": {}, "^b": {}},
            "additionalProperties": False,
        },
        ["/patternProperties", "/additionalProperties"],
        {"type": "object"},
    ),
    "patternProperties": (
        {"type": "object", "patternProperties": {LOOKS: {"type": "null"}}},
        ["/patternProperties"],
        {"type": "object", "additionalProperties": {"type": "null"}},
    ),
    "propertyNames": (
        {"type": "object", "propertyNames": {"pattern": LOOKS, "maxLength": 3}},
        ["/propertyNames/pattern"],
        {"type": "object", "propertyNames": {"maxLength": 3}},
    ),
    "minProperties": (
        {"type": "object", "minProperties": 2, "additionalProperties": {"type": "null"}},
        ["/minProperties"],
        {"type": "object", "additionalProperties": {"type": "null"}},
    ),
    "unevaluatedProperties": (
        {"type": "object", **ONE, "if": {}, "unevaluatedProperties": False},
        ["/if", "/unevaluatedProperties"],
        {"type": "object", **ONE},
    ),
    "in a property": (
        {"type": "object", "properties": {"a/b": {"type": "string", "pattern": LOOKS}, "c": WORD}},
        ["/properties/a~1b/pattern"],
        {"type": "object", "properties": {"a/b": {"type": "string"}, "c": WORD}},
    ),
    "in items": (
        {"type": "array", "items": {"type": "string", "pattern": LOOKS}, "minItems": 2},
        ["/items/pattern"],
        {"type": "array", "items": {"type": "string"}, "minItems": 2},
    ),
    "in prefixItems": (
        {
            "type": "array",
            "prefixItems": [WORD, {"type": "null", "not": {"type": "null"}}],
            "items": False,
        },
        ["/prefixItems/1/not"],
        {"type": "array", "prefixItems": [WORD, {"type": "null"}], "items": False},
    ),
    "in an option": (
        {"anyOf": [{"type": "object", **ONE, "not": {"type": "null"}}, {"type": "null"}]},
        ["/anyOf/0/not"],
        {"anyOf": [{"type": "object", **ONE}, {"type": "null"}]},
    ),
    "in an option of several": (
        {"oneOf": [{"type": "array", "items": WORD, "contains": {}}, {"type": "null"}]},
        ["/oneOf/0/contains"],
        {"anyOf": [{"type": "array", "items": WORD}, {"type": "null"}]},
    ),
    "oneOf": (
        {"oneOf": [{"type": "integer"}, {"type": "integer", "minimum": 3}]},
        ["/oneOf"],
        {"anyOf": [{"type": "integer"}, {"type": "integer", "minimum": 3}]},
    ),
    "in a part": (
        {"allOf": [{"type": "string", "pattern": LOOKS}, {"maxLength": 4}]},
        ["/allOf/0/pattern"],
        {"allOf": [{"type": "string"}, {"maxLength": 4}]},
    ),
    "parts of which none follows both": (
        {"allOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": 1}]},
        ["/allOf/1/maximum"],
        {"type": "integer", "minimum": 3},
    ),
    "a property of several parts": (
        {
            "type": "object",
            "allOf": [
                {"properties": {"a": {"type": "string", "pattern": "^a$"}}},
                {"properties": {"a": {"pattern": LOOKS, "maxLength": 3}}},
            ],
        },
        ["/allOf/1/properties/a/pattern"],
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a$"}}},
    ),
    "in a definition": (
        {"$ref": "#/$defs/word"},
        ["#/$defs/word/not"],
        {"allOf": [WORD]},
    ),
}


DEFINITIONS = {"word": {**WORD, "not": {"type": "null"}}}
