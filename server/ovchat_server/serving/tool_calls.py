"""Calls that a caller forces: held to the tools' schemas by a grammar."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ovchat_server.api.errors import InvalidRequestError, Violation
from ovchat_server.api.schema_support import unenforced
from ovchat_server.api.structured_output import Constraint, ConstraintKind
from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.engine.json_layout import laid_out

if TYPE_CHECKING:
    from ovchat_server.api.chat import ChatRequest, Tool
    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.chat.dialects.registry import Dialects

ANY_ARGUMENTS: JsonObject = {"type": "object"}
NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}


def with_forced_calls(request: ChatRequest, dialects: Dialects) -> ChatRequest:
    """The request, its answer constrained to calls where they are forced.

    Raises:
        InvalidRequestError: Calls of this model cannot be forced.
    """
    choice = request.tool_choice
    if not choice.forced and choice.allowed is None:
        return request
    dialect = dialects.tools
    tag = dialect.tag if isinstance(dialect, ToolDialect) else None
    if tag is None or not choice.forced:
        what = "forced" if choice.forced else "limited to some of the tools"
        complaint = f"{choice.field} cannot be served: calls of this model cannot be {what}."
        violation = Violation(choice.field, complaint, "unsupported_value")
        raise InvalidRequestError.of([violation])
    tags: list[JsonValue] = [
        tag(tool.name, laid_out(_schema(tool)))
        for tool in request.tools
        if choice.allows(tool.name)
    ]
    form: JsonObject = {
        "type": "tags_with_separator",
        "tags": tags,
        "separator": "\n",
        "at_least_one": True,
        "stop_after_first": not choice.parallel,
    }
    constraint = Constraint(ConstraintKind.STRUCTURAL_TAG, form, choice.field)
    return dataclasses.replace(
        request, generation=dataclasses.replace(request.generation, constraint=constraint)
    )


def _schema(tool: Tool) -> JsonValue:
    """What the arguments of a tool are held to."""
    if tool.parameters is None:
        return NO_ARGUMENTS
    # Where it was asked for strictly, reading the request has refused it.
    return ANY_ARGUMENTS if unenforced(tool.parameters) else tool.parameters
