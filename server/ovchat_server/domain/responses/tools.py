"""From the tools of a request to the functions that the model knows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ovchat_server.domain.chat import Tool, ToolChoice, ToolMode
from ovchat_server.domain.declared import Hosted
from ovchat_server.domain.errors import shortened
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.grammar_limits import read_pattern
from ovchat_server.domain.responses.items import Named
from ovchat_server.domain.responses.request import CalledTool
from ovchat_server.domain.responses.tool_types import (
    NEVER_CALLED,
    AllowedTools,
    CustomTool,
    FunctionTool,
    Grammar,
    NamedCustom,
    Namespace,
)
from ovchat_server.domain.tools import chosen_by_name, chosen_by_word, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.reader import Reader
    from ovchat_server.domain.responses.tool_types import AnyTool, Choice

# Of a regular expression: an escape, a class, or a character.
ATOM = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def read_tools(
    reader: Reader, tools: Sequence[AnyTool]
) -> tuple[tuple[Tool, ...], Mapping[str, CalledTool]]:
    """Read the functions that the model may call; what is wrong is noted in the reader.

    Returns:
        The functions, and the tools that they are by the names of the functions.
    """
    functions: dict[str, Tool] = {}
    called: dict[str, CalledTool] = {}
    for tool, space, field in _each(tools, FieldPath.of("tools")):
        if isinstance(tool, Hosted):
            continue
        names = Named(name=tool.name, namespace=space.name if space else None)
        name = names.flat_name
        if name in functions:
            complaint = f"must be unique, got {shortened(repr(name))} twice"
            reader.refuse(field / "name", complaint)
        texts = (space.description if space else None, tool.description, _grammar(tool))
        description = "\n\n".join(filter(None, texts)) or None
        if isinstance(tool, FunctionTool):
            place = field / "parameters"
            functions[name] = Tool(name, description, tool.parameters, tool.strict, place)
        else:
            place = field / "format" / "definition"
            pattern = _pattern(reader, tool, place)
            strict = True if pattern else None
            functions[name] = Tool(
                name, description, _taking_text(pattern), strict, place, part="/properties/input"
            )
        called[name] = CalledTool(tool.name, names.namespace, isinstance(tool, CustomTool))
    return tuple(functions.values()), called


def ignored_in(tools: Sequence[AnyTool]) -> Iterator[FieldPath]:
    """Yield the paths of what does not act: tools of OpenAI's service, grammars as they are."""
    for tool, _, field in _each(tools, FieldPath.of("tools")):
        if isinstance(tool, Hosted):
            yield field
        elif _grammar(tool):
            yield field / "format"


def _each(
    tools: Sequence[AnyTool], field: FieldPath, space: Namespace | None = None
) -> Iterator[tuple[FunctionTool | CustomTool | Hosted, Namespace | None, FieldPath]]:
    """Yield the tools, those in namespaces as well, with their namespaces and paths."""
    for index, tool in enumerate(tools):
        if isinstance(tool, Namespace):
            yield from _each(tool.tools, field / index / "tools", tool)
        else:
            yield tool, space, field / index


def _grammar(tool: FunctionTool | CustomTool) -> str | None:
    """Return what a model is told of a grammar that its text is not held to."""
    form = tool.format if isinstance(tool, CustomTool) else None
    if not isinstance(form, Grammar) or form.syntax != "lark":
        return None
    return f"The input must match this Lark grammar:\n{form.definition}"


def _pattern(reader: Reader, tool: CustomTool, field: FieldPath) -> str | None:
    """Return the pattern that the whole text is held to, if any."""
    form = tool.format
    if not isinstance(form, Grammar) or form.syntax != "regex":
        return None
    read_pattern(reader, field, form.definition)
    return f"^(?:{_without_anchors(form.definition)})$"


def _without_anchors(regex: str) -> str:
    """Take off the anchors around a regular expression or around each of its alternatives.

    The whole text matches without them, too, and inside of a group they could not be enforced.
    """
    atoms = ["|", *ATOM.findall(regex), "|"]
    kept: list[str] = []
    depth = 0
    for before, atom, behind in zip(atoms, atoms[1:], atoms[2:], strict=False):
        depth += (atom == "(") - (atom == ")")
        anchor = (before == "|" and atom == "^") or (atom == "$" and behind == "|")
        if depth or not anchor:
            kept.append(atom)
    return "".join(kept)


def _taking_text(pattern: str | None) -> JsonObject:
    text: JsonObject = {"type": "string", "pattern": pattern} if pattern else {"type": "string"}
    return {
        "type": "object",
        "properties": {"input": text},
        "required": ["input"],
        "additionalProperties": False,
    }


def read_tool_choice(
    reader: Reader,
    given: Choice | None,
    tools: tuple[Tool, ...],
    called: Mapping[str, CalledTool],
    *,
    parallel: bool,
) -> ToolChoice:
    """Read whether and which tools the model calls; what is wrong is noted in the reader.

    Args:
        reader: The request.
        given: The choice as it is there.
        tools: The functions, see read_tools.
        called: The tools that they are.
        parallel: Whether there may be several calls.
    """
    choice = ToolChoice(ToolMode.AUTO if tools else ToolMode.NONE, parallel=parallel)
    match given:
        case None:
            return choice
        case str():
            return chosen_by_word(reader, choice, tools, given)
        case Named():
            mode, chosen = ToolMode.NAMED, [(FieldPath.of("name"), given)]
        case AllowedTools():
            mode = ToolMode(given.mode)
            chosen = [
                (FieldPath.of("tools", index, "name"), tool)
                for index, tool in enumerate(given.tools)
                if isinstance(tool, Named)
            ]
            if not chosen:
                # Only those of OpenAI's service.
                if mode is ToolMode.REQUIRED:
                    complaint = f"must have a function or a custom tool: {NEVER_CALLED}"
                    reader.refuse(choice.field / "tools", complaint)
                return replace(choice, mode=ToolMode.NONE)
    _refuse_unknown(reader, choice, called, chosen)
    return chosen_by_name(choice, mode, [(path, tool.flat_name) for path, tool in chosen])


def _refuse_unknown(
    reader: Reader,
    choice: ToolChoice,
    called: Mapping[str, CalledTool],
    chosen: Sequence[tuple[FieldPath, Named]],
) -> None:
    for custom, kind in ((False, "functions"), (True, "custom tools")):
        known = [name for name, tool in called.items() if tool.custom is custom]
        names = [
            (path, tool.flat_name)
            for path, tool in chosen
            if isinstance(tool, NamedCustom) is custom
        ]
        refuse_unknown(reader, choice, known, names, kind)
