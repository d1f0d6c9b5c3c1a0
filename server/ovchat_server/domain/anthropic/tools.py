"""From the tools of a request to the functions that the model knows, and the choice among them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ovchat_server.domain.anthropic.body import FunctionTool
from ovchat_server.domain.chat import Tool, ToolChoice, ToolMode
from ovchat_server.domain.errors import shortened
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.tools import chosen_by_name, chosen_by_word, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ovchat_server.domain.anthropic.body import AnyTool
    from ovchat_server.domain.reader import Reader

WORDS: Mapping[str, ToolMode] = {
    "auto": ToolMode.AUTO,
    "any": ToolMode.REQUIRED,
    "none": ToolMode.NONE,
}
BY_NAME = "tool"
CHOICE_KEYS = frozenset({"type", "disable_parallel_tool_use"})
CHOICES = {**dict.fromkeys(WORDS, CHOICE_KEYS), BY_NAME: CHOICE_KEYS | {"name"}}


def read_tools(reader: Reader, tools: Sequence[AnyTool]) -> tuple[Tool, ...]:
    """Read the functions that the model may call; what is wrong is noted in the reader."""
    functions: dict[str, Tool] = {}
    for index, tool in enumerate(tools):
        if not isinstance(tool, FunctionTool):
            continue
        field = FieldPath.of("tools", index)
        if tool.name in functions:
            complaint = f"must be unique, got {shortened(repr(tool.name))} twice"
            reader.refuse(field / "name", complaint)
        functions[tool.name] = Tool(
            tool.name, tool.description, tool.input_schema, tool.strict, field / "input_schema"
        )
    return tuple(functions.values())


def read_tool_choice(reader: Reader, tools: tuple[Tool, ...]) -> ToolChoice:
    """Read whether and which tools the model calls; what is wrong is noted in the reader."""
    choice = ToolChoice(ToolMode.AUTO if tools else ToolMode.NONE)
    given = reader.object("tool_choice", CHOICES)
    if given is None or not given.require("type"):
        return choice
    choice = replace(choice, parallel=given.boolean("disable_parallel_tool_use") is not True)
    kind = given.choice("type", CHOICES)
    if kind is None:
        return choice
    if kind != BY_NAME:
        return chosen_by_word(reader, choice, tools, WORDS[kind])
    name = given.string("name") if given.require("name") else None
    if name is None:
        return choice
    names = [(FieldPath.of("name"), name)]
    refuse_unknown(reader, choice, [tool.name for tool in tools], names)
    return chosen_by_name(choice, ToolMode.NAMED, names)
