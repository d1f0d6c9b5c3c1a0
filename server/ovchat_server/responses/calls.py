"""Items that are calls: of functions, whose arguments are JSON, and of custom tools."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, ClassVar

from ovchat_server.responses.custom_input import InputDecoder
from ovchat_server.responses.items import OutputItem, Status

if TYPE_CHECKING:
    from ovchat_server.domain.blocks import Block
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.responses.request import CalledTool
    from ovchat_server.responses.items import Event


class _Call(OutputItem, ABC):
    """A call.

    Attributes:
        text_key: The key of its text.
    """

    text_key: ClassVar[str]

    def __init__(self, response_id: str, index: int, call_id: str, tool: CalledTool) -> None:
        """Make a call without text; see OutputItem."""
        super().__init__(response_id, index)
        self._call_id = call_id
        self._tool = tool

    def _fields(self, status: Status) -> JsonObject:  # noqa: ARG002  a text that just begins is empty
        fields: JsonObject = {
            "call_id": self._call_id,
            "name": self._tool.name,
            self.text_key: self._text,
        }
        if self._tool.namespace is not None:
            fields["namespace"] = self._tool.namespace
        return fields

    def _text_fields(self) -> JsonObject:
        return {self.text_key: self._text}


class FunctionCall(_Call):
    """A call of a function."""

    type = "function_call"
    text_events = "response.function_call_arguments"
    text_key = "arguments"

    def _text_fields(self) -> JsonObject:
        return {"name": self._tool.name, **super()._text_fields()}


class CustomToolCall(_Call):
    """A call of a tool whose input is a text."""

    type = "custom_tool_call"
    text_events = "response.custom_tool_call_input"
    text_key = "input"

    def __init__(self, response_id: str, index: int, call_id: str, tool: CalledTool) -> None:
        """Make a call without input; see OutputItem."""
        super().__init__(response_id, index, call_id, tool)
        self._decoder = InputDecoder()

    def add(self, block: Block) -> list[Event]:
        """Add more of the JSON; the input goes out as far as it is known."""
        return self._add_text(self._decoder.add(block.text))

    def close(self, status: Status) -> list[Event]:
        """Return the events that end it, and first what is left of the input."""
        rest = self._decoder.end(cut=status is Status.INCOMPLETE)
        return [*self._add_text(rest), *super().close(status)]
