"""How calls are written, for the compiler of grammars: formats of xgrammar's structural tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.api.json_value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool, as the form of its calls needs it.

    Attributes:
        schema: The JSON Schema of its arguments.
        arguments: The format of its arguments as JSON.
    """

    name: str
    schema: JsonObject
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class CallForm:
    """How a family writes calls, for grammars that hold a model to it.

    Attributes:
        call: The format of one call, a tag: its beginning, content and end.
        opening: What stands before the first of several calls.
        separator: What stands between two.
        closing: What stands behind the last.
        trigger: What tells in free text that a call was opened: `opening`, or where there is
            none every call, begins with it. "": nothing does, so that calls can be forced, but
            those that the model makes of its own accord cannot be held to anything.
        also: Other forms that models of the family write, all with a trigger if this one has
            one: calls of an answer are of one form, which the model chooses.
    """

    call: Callable[[CalledTool], JsonObject]
    opening: str = ""
    separator: str = "\n"
    closing: str = ""
    trigger: str = ""
    also: tuple[CallForm, ...] = ()

    def forced(self, tools: Sequence[CalledTool], *, parallel: bool) -> JsonObject:
        """An answer that calls some of `tools`, at least one; not `parallel`: only one."""
        if not self.also:
            return self.section(tools, parallel=parallel)
        sections: list[JsonValue] = [form.section(tools, parallel=parallel) for form in self._forms]
        return {"type": "or", "elements": sections}

    def instead(self, tools: Sequence[CalledTool], *, parallel: bool) -> list[JsonValue]:
        """The same as forms among which the answer has one, beside others.

        The compiler chooses between forms only if it knows where each of them ends. So a single
        call is one of its own: behind several stands a space, which says that there are no more.
        """
        forced = self.forced(tools, parallel=parallel)
        if all(form.closing for form in self._forms):
            return [forced]
        single = [form.call(tool) for form in self._forms if not form.opening for tool in tools]
        ended: list[JsonValue] = [tag for tag in single if tag["end"]]
        if ended and not parallel and len(ended) == len(single) and not self.also:
            return ended
        return [*ended, {"type": "tag", "begin": "", "content": forced, "end": " "}]

    def free(self, tools: Sequence[CalledTool], *, parallel: bool) -> JsonObject:
        """Any text, in which calls are of `tools`; not `parallel`: it ends with the first."""
        tags: list[JsonValue] = []
        for form in self._forms:
            if form.opening:
                tags.append(form.section(tools, parallel=parallel))
            else:
                tags += map(form.call, tools)
        return {
            "type": "triggered_tags",
            "triggers": [*self.triggers],
            "tags": tags,
            "stop_after_first": not parallel,
        }

    @property
    def triggers(self) -> tuple[str, ...]:
        """All that tells in free text that a call was opened."""
        return tuple(dict.fromkeys(form.trigger for form in self._forms))

    def ends(self, tools: Sequence[CalledTool]) -> tuple[str, ...]:
        """What tells that a call of `free`, or a section of them, has come to its end."""
        ends: list[str] = []
        for form in self._forms:
            tags = [form.call(tool) for tool in tools]
            ends += [form.closing] if form.opening else [str(tag["end"]) for tag in tags]
        return tuple(dict.fromkeys(filter(None, ends)))

    def section(self, tools: Sequence[CalledTool], *, parallel: bool) -> JsonObject:
        """Calls of this form, with what stands around them."""
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
    def _forms(self) -> tuple[CallForm, ...]:
        return (self, *self.also)


def regex_format(pattern: str) -> JsonObject:
    """The format of what matches `pattern`."""
    return {"type": "regex", "pattern": pattern}


def sequence_format(*formats: JsonObject) -> JsonObject:
    """The format of one after the other."""
    return {"type": "sequence", "elements": [*formats]}
