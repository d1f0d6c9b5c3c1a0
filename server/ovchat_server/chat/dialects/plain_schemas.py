"""What of JSON Schema is more than argument forms say: one keyword of a kind, and no more.

A schema is one of $ref, const, enum, anyOf, oneOf, allOf and type, in this order, with what
belongs to that.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.disjoint_schemas import disjoint, is_of, resolved, types_of
from ovchat_server.chat.dialects.json_patterns import MISREAD, PatternError, json_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.api.json_value import JsonObject, JsonValue

NUMBER = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
ARRAY = frozenset({"items", "prefixItems", "minItems", "maxItems"})
OBJECT = frozenset(
    {
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "minProperties",
        "maxProperties",
    }
)
LENGTH = frozenset({"minLength", "maxLength"})
STRING = LENGTH | {"pattern"}
NEVER = frozenset(
    {
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "contains",
        "minContains",
        "maxContains",
        "uniqueItems",
        "multipleOf",
        "propertyNames",
        "additionalItems",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$dynamicRef",
        "$recursiveRef",
    }
)
COMBINING = ("$ref", "const", "enum", "anyOf", "oneOf", "allOf")
MEANINGFUL = NUMBER | ARRAY | OBJECT | STRING | NEVER | {*COMBINING, "type"}
# Formats that the compiler enforces; others say something to people only.
FORMATS = frozenset(
    {
        "email",
        "date",
        "time",
        "date-time",
        "duration",
        "ipv4",
        "ipv6",
        "hostname",
        "uuid",
        "uri",
        "uri-reference",
        "uri-template",
        "json-pointer",
        "relative-json-pointer",
    }
)
# Keys that hold a schema, an array of schemas, or schemas by name.
ONE = ("items", "additionalProperties")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
NAMED = ("properties", "patternProperties", "$defs", "definitions")


def not_plain(schema: JsonValue) -> str:
    """What of a schema is more than plain; "" where nothing is."""
    for place, item in _walk(schema, ""):
        complaint = _complaint(item, schema)
        if complaint:
            return f"{complaint} at {place or 'the top'}"
    return ""


def _walk(schema: JsonValue, place: str) -> Iterator[tuple[str, JsonObject]]:
    if not isinstance(schema, dict):
        return
    yield place, schema
    for key in ONE:
        yield from _walk(schema.get(key), f"{place}/{key}")
    for key in LISTS:
        children = schema.get(key)
        for index, child in enumerate(children if isinstance(children, list) else ()):
            yield from _walk(child, f"{place}/{key}/{index}")
    for key in NAMED:
        named = schema.get(key)
        for name, child in named.items() if isinstance(named, dict) else ():
            yield from _walk(child, f"{place}/{key}/{name}")


def _complaint(schema: JsonObject, root: JsonValue) -> str:
    given = {key for key in schema if key in MEANINGFUL and _asks(key, schema[key])}
    if never := sorted(given & NEVER):
        return f"uses {never[0]}"
    combining = [key for key in COMBINING if key in given]
    if not combining:
        return _typed(schema, given)
    first = combining[0]
    beside = sorted(given - {first})
    if first in ("const", "enum"):
        return _constant(schema, first, beside)
    return f"uses {beside[0]} beside {first}" if beside else _combined(schema, first, root)


def _constant(schema: JsonObject, key: str, beside: list[str]) -> str:
    values = schema["enum"] if key == "enum" else [schema["const"]]
    if not isinstance(values, list):
        return ""
    if _misread(values):
        return f"uses {key} with a letter such as ß before a digit or a to f"
    if beside not in ([], ["type"]):
        return f"uses {next(name for name in beside if name != 'type')} beside {key}"
    if beside and not all(is_of(value, types_of(schema["type"])) for value in values):
        return f"uses {key} with values of another type"
    return ""


def _misread(values: list[JsonValue]) -> bool:
    """Whether the compiler would misread one of some values: texts alone it is spared."""
    return not all(isinstance(value, str) for value in values) and any(map(_holds_misread, values))


def _holds_misread(value: JsonValue) -> bool:
    match value:
        case str():
            return MISREAD.search(value) is not None
        case list():
            return any(map(_holds_misread, value))
        case dict():
            return any(map(_holds_misread, [*value, *value.values()]))
    return False


def _combined(schema: JsonObject, key: str, root: JsonValue) -> str:
    value = schema[key]
    if key == "$ref":
        return "" if resolved(schema, root) is not None else "uses a $ref to no schema of its own"
    if not isinstance(value, list):
        return ""
    if key == "allOf" and len(value) > 1:
        return "uses allOf of several schemas"
    if key == "oneOf" and not all(
        disjoint(one, other, root) for one, other in itertools.combinations(value, 2)
    ):
        return "uses oneOf of schemas that are not told apart by type or constant"
    return ""


def _typed(schema: JsonObject, given: set[str]) -> str:
    if "type" in given:
        return _string(schema, given) or _number(schema, given) or _object(schema, given)
    if not given:
        return ""
    for kind, keys, signs in (
        ("object", OBJECT, {"properties", "additionalProperties"}),
        ("array", ARRAY, {"items", "prefixItems"}),
    ):
        if given & signs:
            others = sorted(given - keys)
            if others:
                return f"uses {others[0]} beside keywords of an {kind}"
            return _object(schema, given)
    return f"uses {min(given)} without a type"


def _string(schema: JsonObject, given: set[str]) -> str:
    if "string" not in types_of(schema["type"]):
        return ""
    used = [
        "pattern" if "pattern" in given else "",
        min(given & LENGTH, default=""),
        "format" if schema.get("format") in FORMATS else "",
    ]
    used = [key for key in used if key]
    if len(used) > 1:
        return f"uses {used[0]} beside {used[1]}"
    pattern = schema.get("pattern")
    return _pattern(pattern) if isinstance(pattern, str) else ""


def _pattern(pattern: str) -> str:
    try:
        json_pattern(pattern)
    except PatternError as error:
        return f"uses a pattern that {error}"
    return ""


def _number(schema: JsonObject, given: set[str]) -> str:
    """Of bounds on numbers with a fraction the compiler knows 0, from one side."""
    bounds = sorted(given & NUMBER)
    if "number" not in types_of(schema["type"]) or not bounds:
        return ""
    if bounds in (["minimum"], ["maximum"]) and schema[bounds[0]] == 0:
        return ""
    return f"uses {bounds[0]} of a number that may have a fraction"


def _object(schema: JsonObject, given: set[str]) -> str:
    properties = schema.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    required = schema.get("required")
    listed = required if isinstance(required, list) and "required" in given else []
    if any(isinstance(item, str) and item not in names for item in listed):
        return "uses required with names that are not in properties"
    if any(char in '"\\' or char < " " for name in names for char in name):
        return "uses a property whose name JSON escapes"
    return _other_properties(schema, given, names)


def _other_properties(schema: JsonObject, given: set[str], names: list[str]) -> str:
    counts = given & {"minProperties", "maxProperties"}
    patterns = schema.get("patternProperties")
    if counts and not names and schema.get("additionalProperties") is not False:
        return f"uses {min(counts)} where another property may stand twice"
    if not isinstance(patterns, dict) or not patterns:
        return ""
    if names or schema.get("additionalProperties", False) is not False:
        return "uses patternProperties beside other properties"
    return next(filter(None, map(_pattern, patterns)), "")


def _asks(key: str, value: JsonValue) -> bool:
    """Whether a keyword asks for something: `uniqueItems: false` does not."""
    match key:
        case "uniqueItems":
            return value is not False
        case "unevaluatedItems" | "unevaluatedProperties" | "additionalItems":
            return value is not True
        case "required" | "patternProperties":
            return bool(value)
        case "minLength" | "minItems" | "minProperties":
            return value != 0
    return True
