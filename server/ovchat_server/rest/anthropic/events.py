"""The events of a streamed message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.blocks import BlockKind, blocks_of
from ovchat_server.domain.completion import ChunkChoice, Delta, FinishReason, Usage
from ovchat_server.rest.anthropic.objects import (
    begun_block,
    begun_message,
    signature,
    stop,
    usage_object,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.domain.anthropic.request import MessagesRequest
    from ovchat_server.domain.blocks import Block
    from ovchat_server.domain.completion import Chunk, CompletionInfo
    from ovchat_server.domain.json_value import JsonObject

PING: JsonObject = {"type": "ping"}


class MessageEvents:
    """Makes the events of one message, in Anthropic's order. A stream begins with `begin`."""

    def __init__(self, request: MessagesRequest) -> None:
        """Make those of the answer to a request."""
        self._request = request
        # The block that is open, where it is in the content, and its text.
        self._open: Block | None = None
        self._index = 0
        self._texts: list[str] = []
        self._last = ChunkChoice(0, Delta(), FinishReason.STOP)
        self._usage = Usage(0, 0)

    def begin(self, info: CompletionInfo) -> list[JsonObject]:
        """Return the event of a message without content."""
        self._usage = Usage(info.prompt_tokens or 0, 0)
        return [{"type": "message_start", "message": begun_message(info, self._usage)}]

    def chunk(self, chunk: Chunk) -> list[JsonObject]:
        """Return the events of what is new in the content."""
        events: list[JsonObject] = []
        for choice in chunk.choices:
            for block in blocks_of(choice):
                events += self._add(block)
            if choice.finish_reason is not None:
                self._last = choice
        self._usage = chunk.usage or self._usage
        return events

    def end(self) -> list[JsonObject]:
        """Return the events that end the last block and the message."""
        stopped: JsonObject = {
            "type": "message_delta",
            "delta": stop(self._request, self._last, self._usage),
            "usage": usage_object(self._usage),
        }
        return [*self._close(), stopped, {"type": "message_stop"}]

    def _add(self, block: Block) -> Iterator[JsonObject]:
        if self._open is None or self._open.identity != block.identity:
            yield from self._close()
            self._open = block
            yield {
                "type": "content_block_start",
                "index": self._index,
                "content_block": begun_block(block),
            }
        # The SDKs parse arguments as they come, and white space alone is no beginning of JSON.
        call = block.kind is BlockKind.CALL
        text = block.text.lstrip() if call and not self._texts else block.text
        if not text:
            return
        self._texts.append(text)
        match block.kind:
            case BlockKind.TEXT:
                yield self._delta({"type": "text_delta", "text": text})
            case BlockKind.REASONING if self._request.shows_thinking:
                yield self._delta({"type": "thinking_delta", "thinking": text})
            case BlockKind.REASONING:
                # It may last for minutes.
                yield PING
            case BlockKind.CALL:
                yield self._delta({"type": "input_json_delta", "partial_json": text})

    def _close(self) -> Iterator[JsonObject]:
        if self._open is None:
            return
        if self._open.kind is BlockKind.REASONING:
            signed = signature(self._request, "".join(self._texts))
            yield self._delta({"type": "signature_delta", "signature": signed})
        yield {"type": "content_block_stop", "index": self._index}
        self._open = None
        self._index += 1
        self._texts.clear()

    def _delta(self, delta: JsonObject) -> JsonObject:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}
