"""Writing tools, and which of them the model may call, as messages of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from ovchat.v1 import tool_pb2
from ovchat_server.domain.chat import ToolMode
from ovchat_server.providers.ovchat.parameters import json_text

if TYPE_CHECKING:
    from ovchat_server.domain.chat import ChatRequest, Tool, ToolChoice


class ToolChoiceFields(TypedDict, total=False):
    """The fields of a chat that say which tools the model may call."""

    tool_choice: tool_pb2.ToolChoice
    parallel_tool_calls: bool


def tool_message(tool: Tool) -> tool_pb2.Tool:
    """Return the message for a tool."""
    return tool_pb2.Tool(
        function=tool_pb2.FunctionDefinition(
            name=tool.name,
            description=tool.description,
            parameters=None if tool.parameters is None else json_text(tool.parameters),
            strict=tool.strict,
        )
    )


def tool_choice(request: ChatRequest) -> ToolChoiceFields:
    """Return which of its tools the model may call."""
    choice = request.tool_choice
    if not request.tools:
        return {}
    fields = ToolChoiceFields(tool_choice=_choice(choice))
    # By name it is one call anyway.
    if not choice.parallel and choice.mode is not ToolMode.NAMED:
        fields["parallel_tool_calls"] = False
    return fields


def _choice(choice: ToolChoice) -> tool_pb2.ToolChoice:
    names = choice.allowed
    if choice.mode is ToolMode.NAMED and names:
        return tool_pb2.ToolChoice(function_name=names[0])
    mode = tool_pb2.ToolChoiceMode.Value(f"TOOL_CHOICE_MODE_{choice.mode.name}")
    if names is None:
        return tool_pb2.ToolChoice(mode=mode)
    allowed = tool_pb2.AllowedTools(mode=mode, function_names=names)
    return tool_pb2.ToolChoice(allowed_tools=allowed)
