"""JSON Schemas in the words that the compiler gets right (xgrammar 0.1.31).

What it gets wrong and nothing here mends, api.schema_support refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.api.patterns import (
    MISREAD,
    MISREAD_LETTER,
    json_pattern,
    length_pattern,
    literal,
)

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject, JsonValue

# Numbers with one end open come out with too few digits; no answer needs more than these.
LARGEST = 10**18 - 1
ONE = ("items", "additionalProperties")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
NAMED = ("properties", "$defs", "definitions")


def compilable(schema: JsonValue) -> JsonValue:
    """A schema of the same values, or of nearly all.

    Left out are strings with escapes, and other properties beside declared ones: those could
    be a declared one for the second time, and of another type.
    """
    if not isinstance(schema, dict):
        return schema
    written = _nested(schema)
    types = schema.get("type")
    kinds = types if isinstance(types, list) else [types]
    if "enum" in schema or "const" in schema:
        return _constants(written)
    properties = written.get("properties")
    if isinstance(properties, dict) and properties:
        _write_properties(written, properties)
    if "integer" in kinds:
        _close_range(written)
    if "string" in kinds:
        _write_string(written)
    if "array" in kinds:
        # Otherwise no items at all.
        written.setdefault("items", "prefixItems" not in schema or {})
    return written


def compilable_format(form: JsonValue) -> JsonValue:
    """A format with the schemas in it so written."""
    if isinstance(form, list):
        return [compilable_format(item) for item in form]
    if not isinstance(form, dict):
        return form
    return {
        key: compilable(value) if key == "json_schema" else compilable_format(value)
        for key, value in form.items()
    }


def _nested(schema: JsonObject) -> JsonObject:
    written = dict(schema)
    for key in schema.keys() & set(ONE):
        written[key] = compilable(schema[key])
    for key in schema.keys() & set(LISTS):
        children = schema[key]
        if isinstance(children, list):
            written[key] = [compilable(child) for child in children]
    for key in schema.keys() & set(NAMED):
        children = schema[key]
        if isinstance(children, dict):
            written[key] = {name: compilable(child) for name, child in children.items()}
    named = schema.get("patternProperties")
    if isinstance(named, dict):
        written["patternProperties"] = {
            json_pattern(pattern): compilable(child) for pattern, child in named.items()
        }
    return written


def _constants(schema: JsonObject) -> JsonObject:
    listed = [schema["const"]] if "const" in schema else schema["enum"]
    values = listed if isinstance(listed, list) else []
    texts = [msgspec.json.encode(item).decode() for item in values if isinstance(item, str)]
    if len(texts) < len(values) or not any(map(MISREAD.search, texts)):
        return schema
    pattern = f"^({'|'.join(literal(text[1:-1]) for text in texts)})$"
    return {"type": "string", "pattern": pattern}


def _write_properties(schema: JsonObject, properties: JsonObject) -> None:
    schema["additionalProperties"] = False
    schema["properties"] = {_name(name): child for name, child in properties.items()}
    required = schema.get("required")
    if isinstance(required, list):
        schema["required"] = [_name(str(name)) for name in required]


def _name(name: str) -> str:
    """A property's name, in two literals of the compiler's grammar where it misreads one."""
    return MISREAD_LETTER.sub(r'\g<0>" "', name)


def _close_range(schema: JsonObject) -> None:
    below = schema.keys() & {"minimum", "exclusiveMinimum"}
    above = schema.keys() & {"maximum", "exclusiveMaximum"}
    if below and not above:
        schema["maximum"] = LARGEST
    if above and not below:
        schema["minimum"] = -LARGEST


def _write_string(schema: JsonObject) -> None:
    pattern = schema.get("pattern")
    shortest, longest = schema.pop("minLength", 0), schema.pop("maxLength", None)
    if isinstance(pattern, str):
        schema["pattern"] = json_pattern(pattern)
    elif isinstance(shortest, int) and (isinstance(longest, int) or shortest):
        if isinstance(longest, int) and longest < shortest:
            # For the compiler to refuse.
            schema |= {"minLength": shortest, "maxLength": longest}
        else:
            schema["pattern"] = length_pattern(
                shortest, longest if isinstance(longest, int) else None
            )
