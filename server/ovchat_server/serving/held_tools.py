"""Tools whose calls follow a grammar, each with that of its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.call_format import CalledTool
from ovchat_server.domain.field_path import FieldPath, SchemaPath
from ovchat_server.domain.grammar_limits import beyond_limits
from ovchat_server.grammar.cache import Relaxed
from ovchat_server.grammar.formats import ebnf_format
from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.values import json_grammar

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.call_format import CallFormat
    from ovchat_server.domain.chat import Tool
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.grammar.cache import GrammarCache
    from ovchat_server.grammar.relaxation import Write

NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
ANY_ARGUMENTS: JsonObject = {"type": "object"}
ALL = ("",)


@dataclass(frozen=True, slots=True)
class HeldTool:
    """A tool with the grammar of its arguments.

    Attributes:
        field: Where its schema stands in the request.
        left_out: JSON pointers to what of the schema the grammar does not enforce.
    """

    called: CalledTool
    field: FieldPath
    left_out: tuple[str, ...] = ()

    @property
    def unenforced(self) -> tuple[SchemaPath, ...]:
        """What of the schema the grammar does not enforce."""
        return tuple(SchemaPath(self.field, pointer) for pointer in self.left_out)


def held_tool(tool: Tool, calls: CallFormat | None, grammars: GrammarCache) -> HeldTool:
    """Return a tool with the grammar of its arguments, as `calls` have them.

    Raises:
        SchemaError: The tool is strict, and its schema cannot be enforced.
    """
    write = json_grammar if calls is None else calls.arguments
    schema = NO_ARGUMENTS if tool.parameters is None else tool.parameters
    if tool.strict:
        # Reading the request refused one beyond the limits.
        arguments = Relaxed(grammars.grammar(write, _of_objects(schema)))
    else:
        arguments = _relaxed(write, schema, grammars)
    return HeldTool(
        CalledTool(tool.name, ebnf_format(arguments.grammar)), tool.field, arguments.left_out
    )


def _relaxed(write: Write, schema: JsonObject, grammars: GrammarCache) -> Relaxed:
    """Return the grammar of arguments that follow a schema as far as it can be enforced."""
    left_out = () if _allows_objects(schema) else ("/type",)
    try:
        if not beyond_limits(schema):
            found = grammars.relaxed(write, {**schema, "type": "object"})
            return Relaxed(found.grammar, left_out + found.left_out)
    except SchemaError:
        # It is too large, whatever is left out of it.
        pass
    return Relaxed(grammars.grammar(write, ANY_ARGUMENTS), ALL)


def _of_objects(schema: JsonObject) -> JsonObject:
    """Return the schema of the objects that follow a schema: arguments are objects."""
    if _allows_objects(schema):
        return {**schema, "type": "object"}
    # Of another type as well: nothing follows it.
    return {"allOf": [{"type": schema["type"]}, {"type": "object"}]}


def _allows_objects(schema: JsonObject) -> bool:
    kinds = schema.get("type", "object")
    return kinds == "object" or (isinstance(kinds, list) and "object" in kinds)
