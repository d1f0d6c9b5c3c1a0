"""What a JSON Schema allows, one kind of value after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.disjoint_schemas import resolved, types_of

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject, JsonValue

COMBINING = ("anyOf", "oneOf", "allOf")


def leaves(schema: JsonValue, root: JsonValue) -> list[JsonObject]:
    """The alternatives of a schema: each a constant, or of one type; {} is any value.

    Args:
        schema: One that the compiler can enforce, see grammar.schema_support.
        root: Where its definitions stand.
    """
    found: list[JsonObject] = []
    left, seen = [schema], set[str]()
    while left:
        part = left.pop()
        if part is True:
            found.append({})
        if not isinstance(part, dict):
            continue
        if "$ref" in part:
            reference = str(part["$ref"])
            if reference not in seen:
                seen.add(reference)
                left.append(resolved(part, root))
        elif (listed := _listed(part)) is not None:
            found += [{"const": value} for value in listed]
        elif combined := [part[key] for key in COMBINING if key in part]:
            left += reversed(combined[0] if isinstance(combined[0], list) else [])
        else:
            kinds = _kinds(part)
            found += [{**part, "type": kind} for kind in kinds] if kinds else [{}]
    return found


def _listed(schema: JsonObject) -> list[JsonValue] | None:
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return listed if isinstance(listed, list) else None


def _kinds(schema: JsonObject) -> list[str]:
    if "type" in schema:
        return sorted(types_of(schema["type"]))
    if schema.keys() & {"properties", "patternProperties", "additionalProperties"}:
        return ["object"]
    return ["array"] if schema.keys() & {"items", "prefixItems"} else []
