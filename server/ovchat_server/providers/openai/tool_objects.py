"""Writing tools, and which of them the model may call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.chat import ToolMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.chat import Tool, ToolChoice
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.providers.body import Body


def add_tools(body: Body, tools: Sequence[Tool], choice: ToolChoice) -> None:
    """Add the tools, if there are any, and the choice of them where it is not the default."""
    if not tools:
        return
    # By name it is one call anyway.
    single = not choice.parallel and choice.mode is not ToolMode.NAMED
    body.add(
        {
            "tools": [_tool(tool) for tool in tools],
            "tool_choice": _choice(choice),
            "parallel_tool_calls": False if single else None,
        }
    )


def _tool(tool: Tool) -> JsonObject:
    function: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
    }
    given: JsonObject = {name: value for name, value in function.items() if value is not None}
    return {"type": "function", "function": given}


def _choice(choice: ToolChoice) -> JsonValue:
    names: list[JsonValue] = [_named(name) for name in choice.allowed or ()]
    if choice.mode is ToolMode.NAMED:
        return names[0]
    if choice.allowed is not None:
        allowed: JsonObject = {"mode": str(choice.mode), "tools": names}
        return {"type": "allowed_tools", "allowed_tools": allowed}
    return None if choice.mode is ToolMode.AUTO else str(choice.mode)


def _named(name: str) -> JsonObject:
    return {"type": "function", "function": {"name": name}}
