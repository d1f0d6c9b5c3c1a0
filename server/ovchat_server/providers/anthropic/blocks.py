"""Reading the blocks that an answer is made of."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.completion import Delta, ToolCallDelta
from ovchat_server.providers.kind import BadAnswerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.providers.anthropic import wire


@dataclass(slots=True)
class Call:
    """A call that has begun.

    Attributes:
        number: Which call of the answer, from 0.
        arguments: What its beginning says of its arguments: all of them, or "{}" if they follow.
            None: they followed.
    """

    number: int
    arguments: str | None


class BlockReader:
    """Reads blocks, whole or piece by piece; those of types that nobody asked for say nothing."""

    def __init__(self, *, single: bool, include_reasoning: bool) -> None:
        """Read no block yet.

        Args:
            single: Whether only the first call is wanted.
            include_reasoning: Whether thoughts are.
        """
        self._single = single
        self._include_reasoning = include_reasoning
        # By the indices of their blocks.
        self._types: dict[int, str] = {}
        self._calls: dict[int, Call] = {}

    @property
    def called(self) -> bool:
        """Whether there was a call."""
        return bool(self._calls)

    def whole(self, block: wire.Block) -> Iterator[Delta]:
        """Yield what a whole block says.

        Raises:
            BadAnswerError: It is a call without a name or an object of arguments.
        """
        index = len(self._types)
        yield from self._start(index, block)
        yield from self._stop(index)

    def event(self, event: wire.Event) -> Iterator[Delta]:
        """Yield what an event says of a block.

        Raises:
            BadAnswerError: As for `whole`, or there is no such block.
        """
        if event.content_block is not None:
            yield from self._start(event.index, event.content_block)
        elif event.delta is not None:
            yield from self._delta(event.index, event.delta)
        else:
            yield from self._stop(event.index)

    def _start(self, index: int, block: wire.Block) -> Iterator[Delta]:
        self._types[index] = block.type
        if block.type == "tool_use":
            yield from self._call(index, block)
        else:
            yield from self._said(block.type, block)

    def _delta(self, index: int, delta: wire.Delta) -> Iterator[Delta]:
        if index not in self._types:
            raise BadAnswerError(f"block {index} has not begun")
        call = self._calls.get(index)
        if call is None:
            yield from self._said(self._types[index], delta)
        elif delta.partial_json:
            call.arguments = None
            yield from self._called(ToolCallDelta(call.number, arguments=delta.partial_json))

    def _stop(self, index: int) -> Iterator[Delta]:
        call = self._calls.get(index)
        if call is not None and call.arguments is not None:
            yield from self._called(ToolCallDelta(call.number, arguments=call.arguments))

    def _said(self, kind: str, said: wire.Block | wire.Delta) -> Iterator[Delta]:
        if kind == "text" and said.text:
            yield Delta(content=said.text)
        elif kind == "thinking" and said.thinking and self._include_reasoning:
            yield Delta(reasoning_content=said.thinking)

    def _call(self, index: int, block: wire.Block) -> Iterator[Delta]:
        arguments = bytes(block.input).decode(errors="replace")
        if not block.name or not arguments.startswith("{"):
            raise BadAnswerError("a call has no name, or no object of arguments")
        call = Call(len(self._calls), arguments)
        self._calls[index] = call
        # As our own models' calls have them.
        identifier = block.id or f"call_{uuid.uuid4().hex[:24]}"
        yield from self._called(ToolCallDelta(call.number, identifier, block.name, ""))

    def _called(self, delta: ToolCallDelta) -> Iterator[Delta]:
        if not (self._single and delta.index):
            yield Delta(tool_calls=(delta,))
