"""How calls are written, for the compiler of grammars: formats of xgrammar's structural tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.grammar.values import json_grammar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.api.json_value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool, as the format of its calls needs it.

    Attributes:
        arguments: The format of its arguments, as the dialect writes them.
    """

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class CallFormat:
    """How a family writes calls, for grammars that hold a model to it.

    Attributes:
        call: The format of one call, a tag: its beginning, content and end.
        opening: What stands before the first of several calls.
        separator: What stands between two.
        closing: What stands behind the last.
        trigger: What tells in free text that a call was opened: `opening`, or where there is
            none every call, begins with it. "": nothing does, so that calls can be forced, but
            those that the model makes of its own accord cannot be held to anything.
        also: Other formats that models of the family write, all with a trigger if this one has
            one: calls of an answer are of one format, which the model chooses.
        arguments: Writes the EBNF of arguments that follow a schema; raises SchemaError where it
            cannot.
    """

    call: Callable[[CalledTool], JsonObject]
    opening: str = ""
    separator: str = "\n"
    closing: str = ""
    trigger: str = ""
    also: tuple[CallFormat, ...] = ()
    arguments: Callable[[JsonValue], str] = json_grammar

    def forced(self, tools: Sequence[CalledTool], *, parallel: bool) -> JsonObject:
        """An answer that calls some of `tools`, at least one; not `parallel`: only one."""
        if not self.also:
            return self.section(tools, parallel=parallel)
        sections: list[JsonValue] = [one.section(tools, parallel=parallel) for one in self._all]
        return {"type": "or", "elements": sections}

    def instead(self, tools: Sequence[CalledTool], *, parallel: bool) -> list[JsonValue]:
        """The same as formats of which the answer has one, beside others.

        The compiler chooses between formats only if it knows where each of them ends. So a single
        call is one of its own: behind several stands a space, which says that there are no more.
        """
        forced = self.forced(tools, parallel=parallel)
        if all(one.closing for one in self._all):
            return [forced]
        single = [one.call(tool) for one in self._all if not one.opening for tool in tools]
        ended: list[JsonValue] = [tag for tag in single if tag["end"]]
        if ended and not parallel and len(ended) == len(single) and not self.also:
            return ended
        return [*ended, {"type": "tag", "begin": "", "content": forced, "end": " "}]

    def free(self, tools: Sequence[CalledTool], *, parallel: bool) -> JsonObject:
        """Any text, in which calls are of `tools`; not `parallel`: it ends with the first."""
        tags: list[JsonValue] = []
        for one in self._all:
            if one.opening:
                tags.append(one.section(tools, parallel=parallel))
            else:
                tags += map(one.call, tools)
        return {
            "type": "triggered_tags",
            "triggers": [*self.triggers],
            "tags": tags,
            "stop_after_first": not parallel,
        }

    @property
    def triggers(self) -> tuple[str, ...]:
        """All that tells in free text that a call was opened."""
        return tuple(dict.fromkeys(one.trigger for one in self._all))

    def ends(self, tools: Sequence[CalledTool]) -> tuple[str, ...]:
        """What tells that a call of `free`, or a section of them, has come to its end."""
        ends: list[str] = []
        for one in self._all:
            tags = [one.call(tool) for tool in tools]
            ends += [one.closing] if one.opening else [str(tag["end"]) for tag in tags]
        return tuple(dict.fromkeys(filter(None, ends)))

    def section(self, tools: Sequence[CalledTool], *, parallel: bool) -> JsonObject:
        """Calls of this format, with what stands around them."""
        calls: JsonObject = {
            "type": "tags_with_separator",
            "tags": [*map(self.call, tools)],
            "separator": self.separator,
            "at_least_one": True,
            "stop_after_first": not parallel,
        }
        if not self.opening:
            return calls
        return {"type": "tag", "begin": self.opening, "content": calls, "end": self.closing}

    @property
    def _all(self) -> tuple[CallFormat, ...]:
        return (self, *self.also)


def named_call(before: str, after: str, end: str) -> Callable[[CalledTool], JsonObject]:
    """Return what writes calls as a name and arguments, with texts around and between them."""

    def call(tool: CalledTool) -> JsonObject:
        begin = f"{before}{tool.name}{after}"
        return {"type": "tag", "begin": begin, "content": tool.arguments, "end": end}

    return call


def regex_format(pattern: str) -> JsonObject:
    """The format of what matches `pattern`."""
    return {"type": "regex", "pattern": pattern}


def sequence_format(*formats: JsonObject) -> JsonObject:
    """The format of one after the other."""
    return {"type": "sequence", "elements": [*formats]}
