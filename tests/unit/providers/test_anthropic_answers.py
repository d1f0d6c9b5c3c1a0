"""Answers in Anthropic's API, whole and streamed, made by its SDK; and what is no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from anthropic.types import (
    OutputTokensDetails,
    RedactedThinkingBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)

from ovchat_server.domain.chat import Role
from ovchat_server.domain.completion import ChunkChoice, Delta, FinishReason, ToolCallDelta, Usage
from ovchat_server.providers.anthropic.kind import AnthropicKind
from ovchat_server.providers.kind import BadAnswerError, ReportedError, WireError
from tests.messages_api import events, message
from tests.unit.providers.joined import collected
from tests.unit.readers import read_chat

if TYPE_CHECKING:
    from anthropic.types import Message, StopReason

    from ovchat_server.domain.completion import Choice
    from ovchat_server.providers.kind import AnswerReader

KIND = AnthropicKind("p", 4096)
PING = b'{"type": "ping"}'
TEXT = TextBlock(type="text", text="Good day")
THOUGHT = ThinkingBlock(type="thinking", thinking="Hm so", signature="s")
HIDDEN = RedactedThinkingBlock(type="redacted_thinking", data="x")
SEARCH = ServerToolUseBlock(type="server_tool_use", id="s", name="web_search", input={"query": "a"})
ROME = ToolUseBlock(type="tool_use", id="toolu_1", name="get_weather", input={"b": "Rome", "a": 1})
NOW = ToolUseBlock(type="tool_use", id="toolu_2", name="get_time", input={})
CALLS = [("toolu_1", "get_weather", '{"b":"Rome","a":1}'), ("toolu_2", "get_time", "{}")]
# What is said, thought and called, and why it ended.
Said = tuple[str, str | None, list[tuple[str, str, str]], FinishReason, str | int | None]
CUT: dict[StopReason, FinishReason] = {
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.CONTENT_FILTER,
}
ANSWERS: dict[str, tuple[Message, Said]] = {
    "text": (message(TEXT), ("Good day", None, [], FinishReason.STOP, None)),
    "nothing": (message(), ("", None, [], FinishReason.STOP, None)),
    "a stop string": (
        message(TEXT, TEXT, stop="stop_sequence", sequence="!"),
        ("Good dayGood day", None, [], FinishReason.STOP, "!"),
    ),
    "thoughts and calls": (
        message(THOUGHT, HIDDEN, TEXT, ROME, NOW, stop="tool_use"),
        ("Good day", "Hm so", CALLS, FinishReason.TOOL_CALLS, None),
    ),
    "tools of its own": (
        message(SEARCH, TEXT, stop="pause_turn"),
        ("Good day", None, [], FinishReason.LENGTH, None),
    ),
    **{
        reason: (message(TEXT, stop=reason), ("Good day", None, [], ended, None))
        for reason, ended in CUT.items()
    },
}


def streamed(answer: Message) -> list[bytes]:
    """The data of the events of an answer, with a ping after the first."""
    first, *others = (event.to_json().encode() for event in events(answer))
    return [first, PING, *others]


def read(reader: AnswerReader, answer: Message, *, stream: bool) -> list[ChunkChoice]:
    if not stream:
        return list(reader.whole(answer.to_json().encode()))
    return [chunk for data in streamed(answer) for chunk in reader.event(data)]


def told(choice: Choice) -> Said:
    said = choice.message
    calls = [(call.id, call.name, call.arguments) for call in said.tool_calls]
    return said.text, said.reasoning_content, calls, choice.finish_reason, choice.stop_reason


def compact(calls: Said) -> Said:
    """Without the white space of JSON, which the SDK writes."""
    text, thought, called, *ended = calls
    packed = [
        (*named, msgspec.json.encode(msgspec.json.decode(arguments)).decode())
        for *named, arguments in called
    ]
    return text, thought, packed, *ended  # type: ignore[return-value]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name: str, *, stream: bool) -> None:
    answer, expected = ANSWERS[name]
    reader = KIND.reader(read_chat())

    chunks = read(reader, answer, stream=stream)

    assert chunks[0] == ChunkChoice(0, Delta(role=Role.ASSISTANT))
    [choice] = collected(chunks, 1)
    assert compact(told(choice)) == expected
    assert (reader.ended, reader.usage) == (True, Usage(11, 7))


def test_a_stream_is_read_piece_by_piece() -> None:
    chunks = read(KIND.reader(read_chat()), ANSWERS["thoughts and calls"][0], stream=True)

    assert [chunk.delta for chunk in chunks] == [
        Delta(role=Role.ASSISTANT),
        Delta(reasoning_content="Hm"),
        Delta(reasoning_content=" so"),
        Delta(content="Good"),
        Delta(content=" day"),
        Delta(tool_calls=(ToolCallDelta(0, "toolu_1", "get_weather", ""),)),
        Delta(tool_calls=(ToolCallDelta(0, arguments='{"b":"Rom'),)),
        Delta(tool_calls=(ToolCallDelta(0, arguments='e","a":1}'),)),
        Delta(tool_calls=(ToolCallDelta(1, "toolu_2", "get_time", ""),)),
        Delta(tool_calls=(ToolCallDelta(1, arguments="{}"),)),
        Delta(),
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_wanted_is_left_out(*, stream: bool) -> None:
    request = read_chat(include_reasoning=False, parallel_tool_calls=False)
    answer = message(THOUGHT, ROME, NOW, stop="tool_use")

    [choice] = collected(read(KIND.reader(request), answer, stream=stream), 1)

    assert compact(told(choice)) == ("", None, CALLS[:1], FinishReason.TOOL_CALLS, None)


@pytest.mark.parametrize("stream", [False, True])
def test_all_tokens_of_the_prompt_are_counted(*, stream: bool) -> None:
    details = OutputTokensDetails(thinking_tokens=3)
    answer = message(
        TEXT,
        cache_read_input_tokens=0,
        cache_creation_input_tokens=20,
        output_tokens_details=details,
    )
    reader = KIND.reader(read_chat())

    read(reader, answer, stream=stream)

    assert reader.usage == Usage(31, 7, reasoning_tokens=3, cached_tokens=0)


START, *OTHERS, END, STOP = streamed(message(TEXT))


@pytest.mark.parametrize(
    "nonsense",
    [
        [b""],
        [b"<html>"],
        [b"[]"],
        [b"{}"],
        [b'{"type": 1}'],
        [b"\xff" * 8],
        [b"[" * 100_000],
        [OTHERS[1]],
        [END],
        [START, OTHERS[-2]],
        [START, STOP],
        [START, b'{"type": "content_block_start", "content_block": {"type": "tool_use"}}'],
    ],
)
def test_what_is_no_stream_is_reported_as_that(nonsense: list[bytes]) -> None:
    reader = KIND.reader(read_chat())
    *before, last = nonsense
    for data in before:
        list(reader.event(data))
    with pytest.raises(BadAnswerError):
        list(reader.event(last))


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"{}",
        b'{"type": "message"}',
        b'{"type": "message", "content": [{"type": "text", "text": 1}]}',
        b'{"type": "message", "content": [{"type": "tool_use", "name": "a", "input": "b"}]}',
        b'{"type": "completion", "content": []}',
    ],
)
def test_what_is_no_message_is_reported_as_that(body: bytes) -> None:
    with pytest.raises(BadAnswerError):
        KIND.reader(read_chat()).whole(body)


def test_a_stream_that_just_stops_has_not_ended() -> None:
    reader = KIND.reader(read_chat())
    for data in (START, *OTHERS, END):
        list(reader.event(data))
    assert not reader.ended


def error(kind: str, text: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}


def test_errors() -> None:
    body = msgspec.json.encode(error("overloaded_error", "Overloaded"))

    assert KIND.error(body) == WireError("Overloaded")
    for read_it in (KIND.reader(read_chat()).event, KIND.reader(read_chat()).whole):
        with pytest.raises(ReportedError, match=r"^Overloaded$"):
            read_it(body)


def test_models() -> None:
    listed = b'{"data": [{"type": "model", "id": "a"}], "has_more": false, "last_id": "a"}'

    assert KIND.model_ids(listed) == ["a"]
    assert KIND.models_path == "/models?limit=1000"
