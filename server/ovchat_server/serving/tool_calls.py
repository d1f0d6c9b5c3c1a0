"""Calls that a caller forces: held to the tools' schemas by a grammar."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.api.errors import InvalidRequestError, Violation
from ovchat_server.api.schema_support import unenforced
from ovchat_server.api.structured_output import Constraint, ConstraintKind
from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_form import CalledTool
from ovchat_server.engine.json_layout import laid_out

if TYPE_CHECKING:
    from ovchat_server.api.chat import ChatRequest, Tool
    from ovchat_server.api.json_value import JsonObject
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
    written = dialect.form if isinstance(dialect, ToolDialect) else None
    if written is None or not choice.forced:
        what = "forced" if choice.forced else "limited to some of the tools"
        complaint = f"{choice.field} cannot be served: calls of this model cannot be {what}."
        violation = Violation(choice.field, complaint, "unsupported_value")
        raise InvalidRequestError.of([violation])
    called = [_called(tool) for tool in request.tools if choice.allows(tool.name)]
    form = written.forced(called, parallel=choice.parallel)
    constraint = Constraint(ConstraintKind.STRUCTURAL_TAG, form, choice.field)
    return dataclasses.replace(
        request, generation=dataclasses.replace(request.generation, constraint=constraint)
    )


def _called(tool: Tool) -> CalledTool:
    """A tool with what its arguments are held to."""
    if tool.parameters is None:
        return CalledTool(tool.name, NO_ARGUMENTS, laid_out)
    # Where it was asked for strictly, reading the request has refused it.
    schema = ANY_ARGUMENTS if unenforced(tool.parameters) else tool.parameters
    return CalledTool(tool.name, schema, partial(laid_out, root=schema))
