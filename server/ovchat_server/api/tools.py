"""Reading the tools of a chat request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.api.chat import Tool, ToolMode
from ovchat_server.api.errors import shortened

if TYPE_CHECKING:
    from ovchat_server.api.reader import Reader

# OpenAI's rule, and a dot, which OVMS and vLLM let pass.
MAX_TOOLS = 1024
TOOL_KEYS = frozenset({"type", "function", "defer_loading", "cache_control"})
FUNCTION_KEYS = frozenset({"name", "description", "parameters", "strict"})
FUNCTION_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def read_tools(request: Reader) -> tuple[Tool, ...]:
    """The functions the model may call; what is wrong with them is noted in the reader."""
    if request.fields.get("tools") == []:
        request.refuse("tools", "must hold at least one tool; leave it out where there are none")
    tools: dict[str, Tool] = {}
    for reader in request.objects("tools", at_most=MAX_TOOLS):
        tool = _read_tool(reader)
        if tool is None:
            continue
        if tool.name in tools:
            reader.refuse("function.name", f"is {shortened(repr(tool.name))} for a second time")
        tools[tool.name] = tool
    return tuple(tools.values())


def _read_tool(reader: Reader) -> Tool | None:
    if not reader.require("type"):
        return None
    reader.note_unknown(TOOL_KEYS)
    if reader.fields["type"] != "function":
        reader.refuse("type", "must be 'function'", "unsupported_value")
        return None
    reader.require("function")
    function = reader.object("function")
    if function is None or not function.require("name"):
        return None
    function.note_unknown(FUNCTION_KEYS)
    name = function.string("name")
    if name is None:
        return None
    if not FUNCTION_NAME.fullmatch(name):
        function.refuse(
            "name",
            "must be 1 to 64 letters, digits, underscores, dashes or dots, "
            f"got {shortened(repr(name))}",
        )
    return Tool(
        name=name,
        description=function.string("description"),
        parameters=function.json_object("parameters"),
        strict=function.boolean("strict"),
    )


def read_tool_mode(request: Reader, tools: tuple[Tool, ...]) -> ToolMode:
    """Whether the model may call tools. Forcing a call is refused by name."""
    choice = request.fields.get("tool_choice")
    if choice is None:
        return ToolMode.AUTO if tools else ToolMode.NONE
    if choice == "required" or isinstance(choice, dict):
        request.refuse(
            "tool_choice",
            "must be 'none' or 'auto': forcing a call is not supported",
            "unsupported_value",
        )
        return ToolMode.NONE
    mode = request.choice("tool_choice", [*ToolMode])
    return ToolMode(mode) if mode and tools else ToolMode.NONE
