"""The format of the JSON that follows a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.grammar import schema_grammar

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject, JsonValue


def laid_out(schema: JsonValue) -> JsonObject:
    """A format of the JSON that follows `schema`.

    Raises:
        SchemaError: It cannot be enforced.
    """
    return {"type": "grammar", "grammar": schema_grammar(schema)}
