"""Writing tools, and which of them the model may call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.chat import ToolMode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ovchat_server.domain.chat import Tool, ToolChoice
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.providers.body import Body

TYPES: Mapping[ToolMode, str] = {
    ToolMode.NONE: "none",
    ToolMode.AUTO: "auto",
    ToolMode.REQUIRED: "any",
    ToolMode.NAMED: "tool",
}


def add_tools(body: Body, tools: Sequence[Tool], choice: ToolChoice) -> None:
    """Add the tools that the model may call, if there are any, and whether it must."""
    if not tools:
        return
    named = choice.mode is ToolMode.NAMED
    # One by name is chosen among all; there is no choice among some.
    sent = [tool for tool in tools if named or choice.allows(tool.name)]
    chosen: JsonObject = {"type": TYPES[choice.mode]}
    if named and choice.allowed:
        chosen["name"] = choice.allowed[0]
    if not choice.parallel and choice.mode is not ToolMode.NONE:
        chosen["disable_parallel_tool_use"] = True
    body.add(
        {
            "tools": [_tool(tool) for tool in sent],
            "tool_choice": None if chosen == {"type": "auto"} else chosen,
        }
    )


def _tool(tool: Tool) -> JsonObject:
    given: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": {"type": "object", **(tool.parameters or {})},
        "strict": tool.strict or None,
    }
    return {name: value for name, value in given.items() if value is not None}
