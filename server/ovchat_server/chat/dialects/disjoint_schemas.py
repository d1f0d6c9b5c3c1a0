"""JSON Schemas that no value fits both of, as far as that is easy to see."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject, JsonValue

TYPES = {
    "null": type(None),
    "boolean": bool,
    "string": str,
    "array": list,
    "object": dict,
}


def types_of(value: JsonValue) -> frozenset[str]:
    """The types that the value of a `type` keyword names."""
    listed = value if isinstance(value, list) else [value]
    return frozenset(item for item in listed if isinstance(item, str))


def is_of(value: JsonValue, types: frozenset[str]) -> bool:
    """Whether a value is of one of some types."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number" in types or ("integer" in types and float(value).is_integer())
    return any(isinstance(value, TYPES[name]) for name in types & TYPES.keys())


def resolved(schema: JsonValue, root: JsonValue) -> JsonValue | None:
    """A schema, its $ref followed within `root`; None where that leads nowhere."""
    seen: set[str] = set()
    while isinstance(schema, dict) and "$ref" in schema:
        path = schema["$ref"]
        if not isinstance(path, str) or path in seen or not path.startswith("#"):
            return None
        seen.add(path)
        schema = root
        for part in path.removeprefix("#").split("/")[1:]:
            schema = schema.get(part) if isinstance(schema, dict) else None
    return schema


def disjoint(one: JsonValue, other: JsonValue, root: JsonValue) -> bool:
    """Whether no value fits two schemas, as far as that is easy to see."""
    first, second = resolved(one, root), resolved(other, root)
    if not isinstance(first, dict) or not isinstance(second, dict):
        return False
    left, right = _values(first), _values(second)
    if left is not None and right is not None:
        return not any(_equal(a, b) for a, b in itertools.product(left, right))
    if left is not None or right is not None:
        values, types = (left, second) if left is not None else (right, first)
        named = types_of(types.get("type"))
        return bool(named) and not any(is_of(value, named) for value in values or ())
    left_types, right_types = _numbers(first), _numbers(second)
    if left_types and right_types and not left_types & right_types:
        return True
    return left_types == right_types == {"object"} and _told_apart(first, second, root)


def _told_apart(one: JsonObject, other: JsonObject, root: JsonValue) -> bool:
    """Whether two objects have a required property whose constants differ."""
    sides = []
    for schema in (one, other):
        required, properties = schema.get("required"), schema.get("properties")
        sides.append(
            {
                name: values
                for name in (required if isinstance(required, list) else ())
                if isinstance(properties, dict)
                and isinstance(name, str)
                and isinstance(found := resolved(properties.get(name), root), dict)
                and (values := _values(found)) is not None
            }
        )
    return any(
        not any(_equal(a, b) for a, b in itertools.product(sides[0][name], sides[1][name]))
        for name in sides[0].keys() & sides[1].keys()
    )


def _values(schema: JsonObject) -> list[JsonValue] | None:
    """The values that a schema lists, None where it lists none."""
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return listed if isinstance(listed, list) else None


def _numbers(schema: JsonObject) -> set[str]:
    """The types of a schema; an integer is a number."""
    return {"number" if name == "integer" else name for name in types_of(schema.get("type"))}


def _equal(one: JsonValue, other: JsonValue) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)
