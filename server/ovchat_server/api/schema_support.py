"""What of JSON Schema cannot be enforced: refused instead.

A caller that gets an answer against the schema is worse off than one that is told to simplify
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.api.schema.grammar import schema_grammar
from ovchat_server.api.schema.shapes import SchemaError

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonValue


def unenforced(schema: JsonValue) -> str:
    """What of a schema cannot be enforced, completing "<field> ..."; "" where all can."""
    try:
        schema_grammar(schema)
    except SchemaError as error:
        return str(error)
    return ""
