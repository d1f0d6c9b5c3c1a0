"""Reading the tools of a chat request, and which of them the model may call."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ovchat_server.domain.chat import Tool, ToolChoice, ToolMode
from ovchat_server.domain.errors import shortened
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.grammar_limits import refuse_beyond_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.known_keys import Keys
    from ovchat_server.domain.reader import Reader

TOOL_KEYS = frozenset({"type", "function", "defer_loading", "cache_control"})
FUNCTION_KEYS = frozenset({"name", "description", "parameters", "strict"})
CHOICES = {
    "function": frozenset({"type", "function"}),
    "allowed_tools": frozenset({"type", "allowed_tools"}),
}
NAMED_KEYS = frozenset({"name"})
ALLOWED_KEYS = frozenset({"mode", "tools"})
# OpenAI's rule, and a dot, which OVMS and vLLM let pass.
FUNCTION_NAME = re.compile(r"[A-Za-z0-9_.-]+")
MAX_NAME = 64

CHOSEN_BY_WORD = (ToolMode.NONE, ToolMode.AUTO, ToolMode.REQUIRED)


def read_tools(request: Reader) -> tuple[Tool, ...]:
    """Read the functions that the model may call; what is wrong is noted in the reader."""
    if _given(request, "functions"):
        # OpenAI's older form: without the kind of tool around it.
        if _given(request, "tools"):
            request.refuse("functions", "is the older form of tools: send only one of them")
        functions = [(reader, reader) for reader in _listed(request, "functions", FUNCTION_KEYS)]
        return _named_once(functions, FieldPath.of("name"))
    wrapped = []
    for reader in _listed(request, "tools", {"function": TOOL_KEYS}):
        if not reader.require("type"):
            continue
        if reader.fields["type"] != "function":
            reader.refuse("type", "must be 'function'", "unsupported_value")
            continue
        reader.require("function")
        if function := reader.object("function", FUNCTION_KEYS):
            wrapped.append((reader, function))
    return _named_once(wrapped, FieldPath.of("function", "name"))


def read_tool_choice(request: Reader, tools: tuple[Tool, ...]) -> ToolChoice:
    """Read whether and which tools the model calls; what is wrong is noted in the reader."""
    functions = _given(request, "functions")
    # OpenAI's older form has room for one call.
    parallel = request.boolean("parallel_tool_calls") is not False and not functions
    older = request.present("function_call")
    name = "function_call" if older else "tool_choice"
    field = FieldPath.of(name)
    if older and request.present("tool_choice"):
        request.refuse(field, "is the older form of tool_choice: send only one of them")
    mode = ToolMode.AUTO if tools else ToolMode.NONE
    choice = ToolChoice(mode, field, parallel=parallel, older=functions)
    given = request.fields.get(name)
    if given is None:
        return choice
    if isinstance(given, dict):
        reader = request.object(name, NAMED_KEYS if older else CHOICES)
        mode, names = _read_named(reader, older=older) if reader else (ToolMode.NONE, [])
        refuse_unknown(request, choice, [tool.name for tool in tools], names)
        return chosen_by_name(choice, mode, names)
    modes = [ToolMode.NONE, ToolMode.AUTO] if older else list(CHOSEN_BY_WORD)
    word = request.choice(name, modes)
    return ToolChoice(field=field) if word is None else chosen_by_word(request, choice, tools, word)


def chosen_by_word(
    request: Reader, choice: ToolChoice, tools: tuple[Tool, ...], word: str
) -> ToolChoice:
    """Return the choice with the mode that `word` is; note where it needs tools."""
    if word == ToolMode.REQUIRED and not tools:
        request.refuse(choice.field, "needs tools")
    return replace(choice, mode=ToolMode(word) if tools else ToolMode.NONE)


def refuse_unknown(
    request: Reader,
    choice: ToolChoice,
    known: Sequence[str],
    names: Sequence[tuple[FieldPath, str]],
    kind: str = "tools",
) -> None:
    """Note which names are not known.

    Args:
        request: The request.
        choice: The choice that has them.
        known: The names of the tools that there are.
        names: The names, after their paths in the choice.
        kind: What those tools are.
    """
    for path, called in names:
        if called not in known:
            listed = ", ".join(known[:5]) or "none"
            complaint = f"is {shortened(repr(called))}, but the {kind} are: {shortened(listed)}"
            request.refuse(choice.field / path, complaint)


def chosen_by_name(
    choice: ToolChoice, mode: ToolMode, names: Sequence[tuple[FieldPath, str]]
) -> ToolChoice:
    """Return the choice of the tools with these names.

    Args:
        choice: The choice without them.
        mode: Its mode.
        names: The names, after their paths in the choice.
    """
    return replace(
        choice,
        mode=mode,
        allowed=tuple(called for _, called in names),
        # A function by name is one call of it (OpenAI).
        parallel=choice.parallel and mode is not ToolMode.NAMED,
    )


def refuse_large_schemas(request: Reader, tools: tuple[Tool, ...], choice: ToolChoice) -> None:
    """Note which schemas of tools are too large for calls to be held to them.

    The limits are those of response_format. Where nobody asked, a large one is not held to.
    """
    for tool in tools:
        asked = choice.forced or tool.strict
        if tool.parameters is not None and asked and choice.allows(tool.name):
            refuse_beyond_limits(request, tool.field, tool.parameters)


def wrong_name(name: str, longest: int = MAX_NAME) -> str | None:
    """Return what is wrong with the name of a function, if anything.

    Args:
        name: The name.
        longest: The maximum number of its characters.
    """
    if len(name) <= longest and FUNCTION_NAME.fullmatch(name):
        return None
    allowed = f"must be 1 to {longest} letters, digits, underscores, dashes or dots"
    return f"{allowed}, got {shortened(repr(name))}"


def _read_named(choice: Reader, *, older: bool) -> tuple[ToolMode, list[tuple[FieldPath, str]]]:
    """Read the mode, and the names with their paths in the choice."""
    if older:
        return ToolMode.NAMED, _read_name(choice, FieldPath())
    kind = choice.choice("type", CHOICES) if choice.require("type") else None
    if kind == "function":
        choice.require("function")
        function = choice.object("function", NAMED_KEYS)
        return ToolMode.NAMED, _read_name(function, FieldPath.of("function")) if function else []
    if kind is None or not choice.require("allowed_tools"):
        return ToolMode.NONE, []
    allowed = choice.object("allowed_tools", ALLOWED_KEYS)
    if allowed is None:
        return ToolMode.NONE, []
    allowed.require("mode")
    mode = allowed.choice("mode", [ToolMode.AUTO, ToolMode.REQUIRED])
    allowed.require("tools")
    if allowed.fields.get("tools") == []:
        allowed.refuse("tools", "must contain at least one tool")
    names = []
    items = allowed.objects("tools", CHOICES["function"], choice.limits.max_tools)
    for index, item in enumerate(items):
        item.choice("type", ["function"])
        item.require("function")
        if function := item.object("function", NAMED_KEYS):
            path = FieldPath.of("allowed_tools", "tools", index, "function")
            names += _read_name(function, path)
    return ToolMode(mode) if mode else ToolMode.NONE, names


def _read_name(function: Reader, path: FieldPath) -> list[tuple[FieldPath, str]]:
    name = function.string("name") if function.require("name") else None
    return [] if name is None else [(path / "name", name)]


def _given(request: Reader, name: str) -> bool:
    # Agents without tools send an empty list: none, as if it were left out.
    return request.present(name) and request.fields[name] != []


def _listed(request: Reader, name: str, keys: Keys) -> list[Reader]:
    return request.objects(name, keys, request.limits.max_tools)


def _named_once(readers: list[tuple[Reader, Reader]], path: FieldPath) -> tuple[Tool, ...]:
    """Read the tools of functions; the first reader of each pair names them in errors."""
    tools: dict[str, Tool] = {}
    for reader, function in readers:
        tool = _read_function(function)
        if tool is None:
            continue
        if tool.name in tools:
            reader.refuse(path, f"must be unique, got {shortened(repr(tool.name))} twice")
        tools[tool.name] = tool
    return tuple(tools.values())


def _read_function(function: Reader) -> Tool | None:
    name = function.string("name") if function.require("name") else None
    if name is None:
        return None
    if complaint := wrong_name(name):
        function.refuse("name", complaint)
    return Tool(
        name=name,
        description=function.string("description"),
        parameters=function.json_object("parameters"),
        strict=function.boolean("strict"),
        field=function.path("parameters"),
    )
