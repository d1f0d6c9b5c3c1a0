"""How calls are written, for the compiler of grammars: formats of xgrammar's structural tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ovchat_server.api.json_value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool, as the form of its calls needs it.

    Attributes:
        schema: The JSON Schema of its arguments.
        json: The format of the JSON that follows a schema, which may refer to the definitions
            of `schema`.
    """

    name: str
    schema: JsonObject
    json: Callable[[JsonValue], JsonObject]

    @property
    def arguments(self) -> JsonObject:
        """The format of its arguments as JSON."""
        return self.json(self.schema)


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
    """

    call: Callable[[CalledTool], JsonObject]
    opening: str = ""
    separator: str = "\n"
    closing: str = ""
    trigger: str = ""

    def forced(self, tools: Iterable[CalledTool], *, parallel: bool) -> JsonObject:
        """An answer that calls some of `tools`, at least one; not `parallel`: only one."""
        calls = self._calls(tools, parallel=parallel)
        if not self.opening:
            return calls
        return {"type": "tag", "begin": self.opening, "content": calls, "end": self.closing}

    def instead(self, tools: Iterable[CalledTool], *, parallel: bool) -> JsonObject:
        """The same, where the answer may have another form, too."""
        forced = self.forced(tools, parallel=parallel)
        if self.opening:
            return forced
        # The compiler chooses between forms only if it knows where each of them ends.
        return {"type": "tag", "begin": "", "content": forced, "end": " "}

    def free(self, tools: Iterable[CalledTool], *, parallel: bool) -> JsonObject:
        """Any text, in which calls are of `tools`; not `parallel`: it ends with the first."""
        tags: list[JsonValue] = (
            [self.forced(tools, parallel=parallel)] if self.opening else [*map(self.call, tools)]
        )
        return {
            "type": "triggered_tags",
            "triggers": [self.trigger],
            "tags": tags,
            "stop_after_first": not parallel,
        }

    def ends(self, tools: Iterable[CalledTool]) -> list[str]:
        """What tells that a call of `free`, or a section of them, has come to its end."""
        ends = [self.closing] if self.opening else [str(self.call(tool)["end"]) for tool in tools]
        return [*dict.fromkeys(filter(None, ends))]

    def _calls(self, tools: Iterable[CalledTool], *, parallel: bool) -> JsonObject:
        return {
            "type": "tags_with_separator",
            "tags": [*map(self.call, tools)],
            "separator": self.separator,
            "at_least_one": True,
            "stop_after_first": not parallel,
        }
