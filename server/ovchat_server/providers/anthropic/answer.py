"""Reading answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.chat import Role
from ovchat_server.domain.completion import ChunkChoice, Delta, FinishReason, Usage
from ovchat_server.providers.anthropic import wire
from ovchat_server.providers.anthropic.blocks import BlockReader
from ovchat_server.providers.decoding import decode
from ovchat_server.providers.error_body import read_error
from ovchat_server.providers.kind import BadAnswerError, ReportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ovchat_server.domain.chat import ChatRequest

MESSAGE = msgspec.json.Decoder(wire.Message)
EVENT = msgspec.json.Decoder(wire.Event)
# Whatever else ends an answer, the model did. A turn that is paused (pause_turn, with tools of
# Anthropic's servers, which nobody asks for) is not whole, either.
FINISH_REASONS = {
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "pause_turn": FinishReason.LENGTH,
    "refusal": FinishReason.CONTENT_FILTER,
}
NOTHING = wire.Usage()


class MessageReader:
    """Reads the answer to one chat; see AnswerReader.

    Attributes:
        usage: The tokens so far.
        ended: Whether the stream said that it has ended.
    """

    def __init__(self, request: ChatRequest) -> None:
        """Read the answer to a request."""
        self.usage = Usage(0, 0)
        self.ended = False
        self._blocks = BlockReader(
            single=not request.tool_choice.parallel, include_reasoning=request.include_reasoning
        )
        self._told = NOTHING
        self._begun = False
        self._finished = False

    @property
    def complete(self) -> bool:
        """See AnswerReader."""
        return self._finished

    def whole(self, body: bytes) -> Iterable[ChunkChoice]:
        """See AnswerReader."""
        message = decode(body, MESSAGE)
        _refuse_error(message.type, body)
        if message.type != "message" or message.content is None:
            raise BadAnswerError("it is no message with content")
        deltas = [delta for block in message.content for delta in self._blocks.whole(block)]
        self._take_usage(message.usage)
        self.ended = True
        reason = message.stop_reason or "end_turn"
        return [
            _chunk(Delta(role=Role.ASSISTANT)),
            *map(_chunk, deltas),
            self._finish(reason, message.stop_sequence),
        ]

    def event(self, data: bytes) -> Iterable[ChunkChoice]:
        """See AnswerReader."""
        event = decode(data, EVENT)
        _refuse_error(event.type, data)
        return list(self._read(event))

    def _read(self, event: wire.Event) -> Iterator[ChunkChoice]:
        match event:
            case wire.Event(type="message_start", message=wire.Message() as message):
                self._take_usage(message.usage)
                self._begun = True
                yield _chunk(Delta(role=Role.ASSISTANT))
            case wire.Event(type="message_stop"):
                if not self._finished:
                    raise BadAnswerError("it does not say why it ended")
                self.ended = True
            case wire.Event(type="message_delta", delta=wire.Delta() as delta):
                self._take_usage(event.usage)
                if delta.stop_reason is not None and self._goes_on():
                    yield self._finish(delta.stop_reason, delta.stop_sequence)
            case wire.Event(type=kind) if kind.startswith("content_block_"):
                if self._goes_on():
                    yield from map(_chunk, self._blocks.event(event))
            # There are pings, and there may be others some day.

    def _goes_on(self) -> bool:
        """Say whether there may be something new.

        Raises:
            BadAnswerError: It has not begun.
        """
        if not self._begun:
            raise BadAnswerError("it does not begin with message_start")
        return not self._finished

    def _finish(self, reason: str, stop_sequence: str | None) -> ChunkChoice:
        self._finished = True
        called = FinishReason.TOOL_CALLS if self._blocks.called else FinishReason.STOP
        stopped_by = stop_sequence if reason == "stop_sequence" else None
        return ChunkChoice(0, Delta(), FINISH_REASONS.get(reason, called), stopped_by)

    def _take_usage(self, told: wire.Usage | None) -> None:
        """Take what is told of tokens: it counts from the beginning, what is left out stays."""
        if told is None:
            return
        facts = msgspec.structs.asdict(told)
        new = {name: value for name, value in facts.items() if value is not None}
        self._told = usage = msgspec.structs.replace(self._told, **new)
        details, cached = usage.output_tokens_details, usage.cache_read_input_tokens
        self.usage = Usage(
            prompt_tokens=(usage.input_tokens or 0)
            + (usage.cache_creation_input_tokens or 0)
            + (cached or 0),
            completion_tokens=usage.output_tokens or 0,
            reasoning_tokens=details.thinking_tokens if details else None,
            cached_tokens=cached,
        )


def _chunk(delta: Delta) -> ChunkChoice:
    return ChunkChoice(0, delta)


def _refuse_error(kind: str, data: bytes) -> None:
    """Check that an answer or an event is no error.

    Raises:
        ReportedError: It is one.
    """
    if kind == "error":
        raise ReportedError(read_error(data).message or "no reason")
