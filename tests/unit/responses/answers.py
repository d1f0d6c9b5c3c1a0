"""Answers of the Responses API for tests: made of deltas, encoded, and read as callers do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import openai
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from ovchat_server.chat.collector import ChoiceCollector
from ovchat_server.domain.chat import ChatRequest, Message, Role
from ovchat_server.domain.completion import (
    Alternative,
    Chunk,
    ChunkChoice,
    Completion,
    CompletionInfo,
    Delta,
    FinishReason,
    TokenLogprob,
    ToolCallDelta,
    Usage,
)
from ovchat_server.domain.responses.request import CalledTool, ResponsesRequest
from ovchat_server.rest.responses.codec import ResponsesEncoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.errors import ApiError

INFO = CompletionInfo("resp_0a", 1_700_000_000, "demo", "fp", temperature=0.7, top_p=0.9)
USAGE = Usage(11, 7, reasoning_tokens=3, cached_tokens=2)
ENDED = INFO.created + 5
REPEATED: dict[str, Any] = {
    "background": False,
    "instructions": "Be brief.",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [{"type": "custom", "name": "patch"}],
    "store": True,
}
TOOLS = {
    "get": CalledTool("get"),
    "files__read": CalledTool("read", namespace="files"),
    "patch": CalledTool("patch", custom=True),
    "files__edit": CalledTool("edit", namespace="files", custom=True),
}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def request(*, summarized: bool = False) -> ResponsesRequest:
    chat = ChatRequest("demo", (Message(Role.USER, ("Hello",)),))
    return ResponsesRequest(chat, tools=TOOLS, repeated=REPEATED, summarized=summarized)


def logprobs(text: str) -> tuple[TokenLogprob, ...]:
    top = (Alternative(text, -0.5, text.encode()), Alternative("no", -1.5, b"no"))
    return (TokenLogprob(text, -0.5, text.encode(), 0, top),)


def thought(text: str) -> Delta:
    return Delta(reasoning_content=text)


def said(text: str) -> Delta:
    return Delta(content=text)


def called(index: int, name: str, *pieces: str) -> list[Delta]:
    first = ToolCallDelta(index, f"call_{index}", name, "")
    parts = [first, *(ToolCallDelta(index, arguments=piece) for piece in pieces)]
    return [Delta(tool_calls=(part,)) for part in parts]


def chunks(
    deltas: Sequence[Delta], reason: FinishReason = FinishReason.STOP, *, likely: bool = False
) -> list[ChunkChoice]:
    parts = [
        ChunkChoice(
            0, delta, content_logprobs=logprobs(delta.content) if likely and delta.content else ()
        )
        for delta in deltas
    ]
    return [ChunkChoice(0, Delta(Role.ASSISTANT)), *parts, ChunkChoice(0, Delta(), reason)]


def streamed(asked: ResponsesRequest, parts: Sequence[ChunkChoice]) -> bytes:
    encoder = ResponsesEncoder(asked)
    events = [encoder.begin(INFO), encoder.keep_alive()]
    events += [encoder.chunk(Chunk(INFO, (part,))) for part in parts]
    return b"".join([*events, encoder.chunk(Chunk(INFO, (), USAGE, ENDED)), encoder.end()])


def broken(error: ApiError, deltas: Sequence[Delta]) -> bytes:
    encoder = ResponsesEncoder(request())
    events = [encoder.begin(INFO)]
    events += [encoder.chunk(Chunk(INFO, (ChunkChoice(0, delta),))) for delta in deltas]
    return b"".join([*events, encoder.failure(error)])


def whole(asked: ResponsesRequest, parts: Sequence[ChunkChoice]) -> dict[str, Any]:
    collector = ChoiceCollector(blocks=True)
    for part in parts:
        collector.add(part)
    completion = Completion(INFO, (collector.choice(),), USAGE, ENDED)
    answer: dict[str, Any] = json.loads(json.dumps(ResponsesEncoder(asked).whole(completion)))
    assert Response.model_validate(answer).id == INFO.id
    return answer


def events(stream: bytes) -> list[dict[str, Any]]:
    """The events, each of them as OpenAI's types have it."""
    frames = stream.decode().removesuffix("\n\n").split("\n\n")
    assert frames.pop() == "data: [DONE]"
    found: list[dict[str, Any]] = []
    for frame in frames:
        if frame == ": ping":
            continue
        name, data = frame.split("\n")
        value = json.loads(data.removeprefix("data: "))
        EVENT.validate_python(value)
        assert name == f"event: {value['type']}"
        assert [*value][:2] == ["type", "sequence_number"]
        assert value["sequence_number"] == len(found)
        found.append(value)
    return found


def kinds(stream: bytes) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events(stream)]


def sdk_stream(stream: bytes) -> Any:
    """The stream as a caller of OpenAI's SDK has it."""
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
    )
    client = openai.OpenAI(api_key="none", http_client=httpx.Client(transport=transport))
    return client.responses.stream(model="demo", input="Hello")


def deltas_of(found: Sequence[dict[str, Any]], item: dict[str, Any]) -> tuple[str, list[Any]]:
    """The text and the log probabilities of an item from the events alone."""
    mine = [event for event in found if event.get("item_id") == item["id"] and "delta" in event]
    return (
        "".join(event["delta"] for event in mine),
        [logprob for event in mine for logprob in event.get("logprobs", ())],
    )


def content_of(item: dict[str, Any]) -> tuple[str, list[Any]]:
    for key in ("arguments", "input"):
        if key in item:
            return item[key], []
    (part,) = item["summary"] if item.get("summary") else item["content"]
    return part["text"], part.get("logprobs", [])


OPENING = ["created", "in_progress"]
MESSAGE = [
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
]
REASONING = [name.replace("output_text", "reasoning_text") for name in MESSAGE]
SUMMARY = [
    "output_item.added",
    "reasoning_summary_part.added",
    "reasoning_summary_text.delta",
    "reasoning_summary_text.done",
    "reasoning_summary_part.done",
    "output_item.done",
]
CALL = [
    "output_item.added",
    "function_call_arguments.delta",
    "function_call_arguments.done",
    "output_item.done",
]
CUSTOM = [name.replace("function_call_arguments", "custom_tool_call_input") for name in CALL]
EMPTY = [name for name in MESSAGE if not name.endswith("delta")]
