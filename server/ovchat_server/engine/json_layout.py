"""How JSON is laid out where its schema leaves no choice of properties.

The compiler allows any white space between the parts of JSON, and small models, once in it,
never leave it. Objects whose properties are all required are therefore spelt out, in the
layout of most training data: `{"name": "Anna", "age": 34}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.api.patterns import literal
from ovchat_server.engine.schema_dialect import compilable

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject, JsonValue

DEFINITIONS = ("$defs", "definitions")
# Schemas that are used in many places are written out in each.
MAX_PARTS = 500


class _TooManyPartsError(Exception):
    """Written out, the schema would be too long."""


def laid_out(schema: JsonValue, root: JsonValue = None) -> JsonObject:
    """A format of the JSON that follows `schema`.

    Args:
        schema: What to follow.
        root: Where its definitions stand, if not in itself.
    """
    layout = _Layout(schema if root is None else root)
    try:
        return layout.form(schema, frozenset())
    except _TooManyPartsError:
        return layout.as_it_is(schema)


class _Layout:
    """Lays out one schema."""

    def __init__(self, root: JsonValue) -> None:
        self._root = root if isinstance(root, dict) else {}
        self._parts = 0

    def form(self, schema: JsonValue, inside: frozenset[str]) -> JsonObject:
        """A format of what follows `schema`, which stands inside the definitions `inside`."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise _TooManyPartsError
        if isinstance(schema, dict):
            reference = schema.get("$ref")
            if isinstance(reference, str) and reference not in inside:
                target = self._definition(reference)
                if target is not None:
                    return self.form(target, inside | {reference})
            for key in ("anyOf", "oneOf", "allOf"):
                options = schema.get(key)
                if isinstance(options, list) and options and "$ref" not in schema:
                    forms: list[JsonValue] = [self.form(option, inside) for option in options]
                    return {"type": "or", "elements": forms}
            if _leaves_no_choice(schema):
                return self._object(schema, inside)
        return self.as_it_is(schema)

    def _object(self, schema: JsonObject, inside: frozenset[str]) -> JsonObject:
        properties = schema["properties"]
        elements: list[JsonValue] = []
        start = "{"
        for name, child in properties.items() if isinstance(properties, dict) else ():
            key = msgspec.json.encode(name).decode()
            elements += [_text(f"{start}{key}: "), self.form(child, inside)]
            start = ", "
        return {"type": "sequence", "elements": [*elements, _text("}")]}

    def _definition(self, reference: str) -> JsonValue:
        for key in DEFINITIONS:
            named = self._root.get(key)
            name = reference.removeprefix(f"#/{key}/")
            if isinstance(named, dict) and name != reference and name in named:
                return named[name]
        return None

    def as_it_is(self, schema: JsonValue) -> JsonObject:
        """The compiler's own layout."""
        return {"type": "json_schema", "json_schema": compilable(self._with_definitions(schema))}

    def _with_definitions(self, schema: JsonValue) -> JsonValue:
        if not isinstance(schema, dict):
            return schema
        known = {key: self._root[key] for key in DEFINITIONS if key in self._root}
        return {**known, **schema}


def _leaves_no_choice(schema: JsonObject) -> bool:
    properties, required = schema.get("properties"), schema.get("required")
    return (
        schema.get("type", "object") == "object"
        and isinstance(properties, dict)
        and bool(properties)
        and isinstance(required, list)
        and properties.keys() <= {name for name in required if isinstance(name, str)}
        and not schema.keys() & {"const", "enum", "$ref", "minProperties", "maxProperties"}
    )


def _text(text: str) -> JsonObject:
    # Not a const_string: the compiler misreads some letters in those.
    return {"type": "regex", "pattern": literal(text)}
