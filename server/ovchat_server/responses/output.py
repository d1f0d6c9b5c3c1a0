"""The output of a response as it grows: what is streamed of it, and what it is in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.blocks import Block, BlockKind
from ovchat_server.domain.responses.request import CalledTool
from ovchat_server.responses.calls import CustomToolCall, FunctionCall
from ovchat_server.responses.items import Status
from ovchat_server.responses.parts import OutputMessage, Reasoning, SummarizedReasoning

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.responses.request import ResponsesRequest
    from ovchat_server.responses.items import Event, OutputItem


class Output:
    """The items of a response, the last of which is open. Each is a block of the answer."""

    def __init__(self, request: ResponsesRequest, response_id: str) -> None:
        """Begin without items."""
        self._request = request
        self._response_id = response_id
        self._closed: list[JsonValue] = []
        self._open: tuple[OutputItem, Block] | None = None

    @property
    def items(self) -> list[JsonValue]:
        """The items as they are now; an open one is incomplete."""
        if self._open is None:
            return [*self._closed]
        return [*self._closed, self._open[0].whole(Status.INCOMPLETE)]

    def add(self, block: Block) -> list[Event]:
        """Add what is new of a block, and return the events that say so."""
        if self._open is not None and self._open[1].identity == block.identity:
            return self._open[0].add(block)
        events = self._close(Status.COMPLETED)
        item = self._item(block)
        self._open = item, block
        return [*events, *item.open(), *item.add(block)]

    def end(self, status: Status) -> list[Event]:
        """Return the events that end the last item; see `status` of the response.

        An answer of nothing is an empty message: where there is none, SDKs have no text at all.
        """
        opening = [] if self._open else self.add(Block(BlockKind.TEXT, ""))
        return [*opening, *self._close(status)]

    def _close(self, status: Status) -> list[Event]:
        if self._open is None:
            return []
        item, _ = self._open
        self._open = None
        events = item.close(status)
        self._closed.append(item.whole(status))
        return events

    def _item(self, block: Block) -> OutputItem:
        index = len(self._closed)
        match block.kind:
            case BlockKind.TEXT:
                return OutputMessage(self._response_id, index)
            case BlockKind.REASONING:
                reasoning = SummarizedReasoning if self._request.summarized else Reasoning
                return reasoning(self._response_id, index)
            case BlockKind.CALL:
                tool = self._request.tools.get(block.name) or CalledTool(block.name)
                call = CustomToolCall if tool.custom else FunctionCall
                return call(self._response_id, index, block.call_id, tool)
