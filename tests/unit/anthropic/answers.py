"""Answers of the Messages API for tests: made of deltas, encoded, and read as callers do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import BaseModel, TypeAdapter

from ovchat_server.chat.collector import ChoiceCollector
from ovchat_server.domain import chat
from ovchat_server.domain.anthropic.request import MessagesRequest
from ovchat_server.domain.completion import (
    Chunk,
    ChunkChoice,
    Completion,
    CompletionInfo,
    Delta,
    FinishReason,
    ToolCallDelta,
    Usage,
)
from ovchat_server.domain.generation import Ending, GenerationParams
from ovchat_server.rest.anthropic.codec import MessagesEncoder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.domain.errors import ApiError

INFO = CompletionInfo("msg_0a", 1_700_000_000, "demo", "fp", prompt_tokens=11)
USAGE = Usage(11, 7, reasoning_tokens=3, cached_tokens=2)
PING = {"type": "ping"}
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)


def request(*, shows_thinking: bool = True) -> MessagesRequest:
    ending = Ending(max_tokens=7, stop=("END",))
    asked = chat.ChatRequest(
        "demo",
        (chat.Message(chat.Role.USER, ("Hello",)),),
        generation=GenerationParams(ending=ending),
    )
    return MessagesRequest(asked, shows_thinking=shows_thinking)


def thought(text: str) -> Delta:
    return Delta(reasoning_content=text)


def said(text: str) -> Delta:
    return Delta(content=text)


def called(index: int, *pieces: str, call_id: str = "call_1f") -> list[Delta]:
    first = ToolCallDelta(index, call_id, "get", "")
    parts = [first, *(ToolCallDelta(index, arguments=piece) for piece in pieces)]
    return [Delta(tool_calls=(part,)) for part in parts]


def chunks(
    deltas: Sequence[Delta],
    reason: FinishReason = FinishReason.STOP,
    stopped_by: str | int | None = None,
) -> list[ChunkChoice]:
    parts = [ChunkChoice(0, delta) for delta in deltas]
    return [
        ChunkChoice(0, Delta(chat.Role.ASSISTANT)),
        *parts,
        ChunkChoice(0, Delta(), reason, stopped_by),
    ]


def streamed(
    asked: MessagesRequest, parts: Sequence[ChunkChoice], usage: Usage | None = USAGE
) -> bytes:
    encoder = MessagesEncoder(asked)
    sent = [encoder.begin(INFO), encoder.keep_alive()]
    sent += [encoder.chunk(Chunk(INFO, (part,))) for part in parts]
    return b"".join([*sent, encoder.chunk(Chunk(INFO, (), usage)), encoder.end()])


def broken(error: ApiError, deltas: Sequence[Delta]) -> bytes:
    encoder = MessagesEncoder(request())
    sent = [encoder.begin(INFO)]
    sent += [encoder.chunk(Chunk(INFO, (ChunkChoice(0, delta),))) for delta in deltas]
    return b"".join([*sent, encoder.failure(error)])


def whole(
    asked: MessagesRequest, parts: Sequence[ChunkChoice], usage: Usage = USAGE
) -> dict[str, Any]:
    collector = ChoiceCollector(blocks=True)
    for part in parts:
        collector.add(part)
    completion = Completion(INFO, (collector.choice(),), usage)
    answer: dict[str, Any] = json.loads(json.dumps(MessagesEncoder(asked).whole(completion)))
    check(Message.model_validate(answer))
    return answer


def events(stream: bytes) -> list[dict[str, Any]]:
    """The events but for those that keep it alive, each of them as Anthropic's types have it."""
    found: list[dict[str, Any]] = []
    for frame in stream.decode().removesuffix("\n\n").split("\n\n"):
        name, data = frame.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert name == f"event: {value['type']}"
        if value != PING:
            check(EVENT.validate_python(value))
            found.append(value)
    return found


def check(read: Any) -> None:
    """Check that nothing is in there that the SDK's types do not have."""
    if isinstance(read, BaseModel):
        assert not read.model_extra
        for _, value in read:
            check(value)
    elif isinstance(read, list):
        for item in read:
            check(item)


def outline(found: Sequence[dict[str, Any]]) -> Iterator[Any]:
    """What happens to the content: which block begins, what of it follows, that it ends."""
    for event in found:
        match event["type"].removeprefix("content_block_"):
            case "start":
                yield event["content_block"]["type"]
            case "delta":
                kind, text = event["delta"].values()
                yield kind, text
            case "stop":
                yield "stop"


def sdk_message(stream: bytes) -> dict[str, Any]:
    """The stream as a caller of Anthropic's SDK reads it."""
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, content=stream
        )
    )
    client = anthropic.Anthropic(
        api_key="none", max_retries=0, http_client=httpx2.Client(transport=transport)
    )
    with client.messages.stream(
        model="demo", max_tokens=7, messages=[{"role": "user", "content": "Hello"}]
    ) as read:
        message: dict[str, Any] = read.get_final_message().to_dict()
    return message
