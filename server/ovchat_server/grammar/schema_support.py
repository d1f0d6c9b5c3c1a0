"""What of JSON Schema cannot be enforced: refused instead.

A caller that gets an answer against the schema is worse off than one that is told to simplify
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.grammar import schema_grammar
from ovchat_server.grammar.schema.shapes import SchemaError

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject, JsonValue


def unenforced(schema: JsonValue) -> str:
    """What of a schema cannot be enforced, completing "<field> ..."; "" where all can."""
    try:
        schema_grammar(schema)
    except SchemaError as error:
        return str(error)
    return ""


def of_objects(schema: JsonObject) -> JsonObject:
    """The objects that follow a schema, where none are refused: a call's arguments are one."""
    kinds = schema.get("type", "object")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        return {**schema, "type": "object"}
    # Of another type as well: nothing follows it.
    return {"allOf": [{"type": kinds}, {"type": "object"}]}
