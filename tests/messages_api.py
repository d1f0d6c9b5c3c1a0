"""Anthropic's Messages API by its SDK's own types: requests are checked, answers become events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
from anthropic.types import (
    InputJSONDelta,
    Message,
    MessageDeltaUsage,
    RawContentBlockDeltaEvent,
    RawContentBlockStartEvent,
    RawContentBlockStopEvent,
    RawMessageDeltaEvent,
    RawMessageStartEvent,
    RawMessageStopEvent,
    SignatureDelta,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    Usage,
)
from anthropic.types.message_create_params import (
    MessageCreateParamsNonStreaming,
    MessageCreateParamsStreaming,
)
from anthropic.types.raw_message_delta_event import Delta
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from anthropic.types import (
        ContentBlock,
        RawContentBlockDelta,
        RawMessageStreamEvent,
        StopReason,
    )

PARAMS = {
    False: TypeAdapter[Any](MessageCreateParamsNonStreaming),
    True: TypeAdapter[Any](MessageCreateParamsStreaming),
}
# Those of the version 2023-06-01 that the SDK's, which is newer, does not know.
SAMPLING = {"temperature", "top_p", "top_k"}


def check_request(body: Mapping[str, Any]) -> None:
    """Check that a request is one of the API's, without a field that it does not have."""
    newer = {name: value for name, value in body.items() if name not in SAMPLING}
    read = _read(PARAMS[newer.get("stream", False)].validate_python(newer))
    # Unknown fields are left out when it is read.
    assert read == newer


def _read(value: Any) -> Any:
    """What pydantic reads of a value: of arrays it does when they are iterated."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {name: _read(item) for name, item in value.items()}
    return [_read(item) for item in value] if isinstance(value, Iterable) else value


def message(
    *content: ContentBlock, stop: StopReason = "end_turn", sequence: str | None = None, **usage: Any
) -> Message:
    return Message(
        id="msg_1",
        type="message",
        role="assistant",
        model="claude",
        content=[*content],
        stop_reason=stop,
        stop_sequence=sequence,
        usage=Usage(**{"input_tokens": 11, "output_tokens": 7, **usage}),
    )


def events(whole: Message) -> Iterator[RawMessageStreamEvent]:
    """The events in which a message is streamed; each text in two pieces."""
    begun: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    usage = whole.usage.model_copy(update={"output_tokens": 1})
    begun_message = whole.model_copy(update={**begun, "usage": usage})
    yield RawMessageStartEvent(type="message_start", message=begun_message)
    for index, block in zip(count(), whole.content, strict=False):
        empty, deltas = _pieces(block)
        yield RawContentBlockStartEvent(
            type="content_block_start", index=index, content_block=empty
        )
        for delta in deltas:
            yield RawContentBlockDeltaEvent(type="content_block_delta", index=index, delta=delta)
        yield RawContentBlockStopEvent(type="content_block_stop", index=index)
    yield RawMessageDeltaEvent(
        type="message_delta",
        delta=Delta(stop_reason=whole.stop_reason, stop_sequence=whole.stop_sequence),
        usage=MessageDeltaUsage(
            output_tokens=whole.usage.output_tokens,
            output_tokens_details=whole.usage.output_tokens_details,
        ),
    )
    yield RawMessageStopEvent(type="message_stop")


def _pieces(block: ContentBlock) -> tuple[ContentBlock, list[RawContentBlockDelta]]:
    """The beginning of a block, and what follows."""
    match block:
        case TextBlock(text=text):
            return block.model_copy(update={"text": ""}), [
                TextDelta(type="text_delta", text=piece) for piece in _halves(text)
            ]
        case ThinkingBlock(thinking=text, signature=signature):
            return block.model_copy(update={"thinking": "", "signature": ""}), [
                *(ThinkingDelta(type="thinking_delta", thinking=piece) for piece in _halves(text)),
                SignatureDelta(type="signature_delta", signature=signature),
            ]
        case ToolUseBlock(input=value):
            # It begins with nothing; where there are no arguments nothing follows.
            text = msgspec.json.encode(value).decode() if value else ""
            return block.model_copy(update={"input": {}}), [
                InputJSONDelta(type="input_json_delta", partial_json=piece)
                for piece in ("", *_halves(text))
            ]
    return block, []


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]
