"""The formats of calls, as formats of xgrammar's structural tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.grammar.values import json_grammar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.grammar.relaxation import Write


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool with the format of its arguments.

    Attributes:
        arguments: The format of its arguments, as the dialect writes them.
    """

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class CallFormat:
    """How a family of models writes calls, for grammars that enforce it.

    Attributes:
        call: The format of one call, a tag: its beginning, content and end.
        opening: The text before the first of several calls.
        separator: The text between two calls.
        closing: The text after the last call.
        trigger: The text that opens calls within free text: `opening`, or if that is empty every
            call, begins with it. "" if there is none: then calls can be forced, but those that
            the model makes by itself cannot be enforced.
        also: Other formats that models of the family write, all with a trigger if this one has
            one: the calls of an answer have one format, which the model chooses.
        arguments: Writes the EBNF of arguments that follow a schema.
    """

    call: Callable[[CalledTool], JsonObject]
    opening: str = ""
    separator: str = "\n"
    closing: str = ""
    trigger: str = ""
    also: tuple[CallFormat, ...] = ()
    arguments: Write = json_grammar

    def forced(self, tools: Sequence[CalledTool], *, parallel: bool) -> JsonObject:
        """Return the format of an answer with calls of `tools`, exactly one if not `parallel`."""
        if not self.also:
            return self.section(tools, parallel=parallel)
        sections: list[JsonValue] = [one.section(tools, parallel=parallel) for one in self._all]
        return {"type": "or", "elements": sections}

    def instead(self, tools: Sequence[CalledTool], *, parallel: bool) -> list[JsonValue]:
        """Return the same as formats, one of which the answer has, beside others.

        The compiler chooses between formats only if it knows where each of them ends. So a single
        call has a format of its own: several end with a space, after which there are no more.
        """
        forced = self.forced(tools, parallel=parallel)
        if all(one.closing for one in self._all):
            return [forced]
        single = [one.call(tool) for one in self._all if not one.opening for tool in tools]
        ended: list[JsonValue] = [tag for tag in single if tag["end"]]
        if ended and not parallel and len(ended) == len(single) and not self.also:
            return ended
        return [*ended, tag_format("", forced, " ")]

    def free(self, tools: Sequence[CalledTool], *, parallel: bool) -> JsonObject:
        """Return the format of text with calls, which ends with the first if not `parallel`."""
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
        """The texts that open a call within free text."""
        return tuple(dict.fromkeys(one.trigger for one in self._all))

    def ends(self, tools: Sequence[CalledTool]) -> tuple[str, ...]:
        """Return the texts that end a call of `free`, or a section of calls."""
        ends: list[str] = []
        for one in self._all:
            tags = [one.call(tool) for tool in tools]
            ends += [one.closing] if one.opening else [str(tag["end"]) for tag in tags]
        return tuple(dict.fromkeys(filter(None, ends)))

    def section(self, tools: Sequence[CalledTool], *, parallel: bool) -> JsonObject:
        """Return the format of calls, with the texts around them."""
        calls: JsonObject = {
            "type": "tags_with_separator",
            "tags": [*map(self.call, tools)],
            "separator": self.separator,
            "at_least_one": True,
            "stop_after_first": not parallel,
        }
        if not self.opening:
            return calls
        return tag_format(self.opening, calls, self.closing)

    @property
    def _all(self) -> tuple[CallFormat, ...]:
        return (self, *self.also)


def named_call(before: str, after: str, end: str) -> Callable[[CalledTool], JsonObject]:
    """Return what writes calls as a name and arguments, with texts around and between them."""

    def call(tool: CalledTool) -> JsonObject:
        return tag_format(f"{before}{tool.name}{after}", tool.arguments, end)

    return call


def tag_format(begin: str, content: JsonObject, end: str = "") -> JsonObject:
    """Return the format of a content with texts around it."""
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def regex_format(pattern: str) -> JsonObject:
    """Return the format of texts that match `pattern`."""
    return {"type": "regex", "pattern": pattern}


def sequence_format(*formats: JsonObject) -> JsonObject:
    """Return the format of several formats, one after the other."""
    return {"type": "sequence", "elements": [*formats]}
