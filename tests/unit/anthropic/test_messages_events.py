"""Answers of the Messages API: events, the message they lead to, and the same one as a whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from anthropic.types import ErrorResponse
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.domain import errors
from ovchat_server.domain.anthropic.signatures import (
    hidden_thinking,
    hiding_signature,
    shown_signature,
)
from ovchat_server.domain.completion import Delta, FinishReason, Usage
from ovchat_server.rest.anthropic.codec import encode_error
from ovchat_server.rest.anthropic.objects import input_tokens
from ovchat_server.telemetry.logs import request_id
from tests.unit.anthropic.answers import (
    broken,
    called,
    check,
    chunks,
    events,
    outline,
    request,
    said,
    sdk_message,
    streamed,
    thought,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECES = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3)
ARGUMENTS = st.sampled_from(
    [[], ["{}"], [" ", '{"b": [1', '], "a": "x"}'], ['{"b": 1.5, "a": {"c": "', "d"]]
)


@st.composite
def answers(draw: st.DrawFn) -> list[Delta]:
    deltas: list[Delta] = []
    count = 0
    for kind in draw(st.lists(st.sampled_from("rtc"), max_size=5)):
        if kind == "c":
            deltas += called(count, *draw(ARGUMENTS))
            count += 1
        else:
            deltas += map(thought if kind == "r" else said, draw(PIECES))
    return deltas


@given(answers(), st.sampled_from(FinishReason), st.booleans())
def test_the_sdk_joins_the_events_to_the_whole(
    deltas: list[Delta],
    reason: FinishReason,
    shows_thinking: bool,  # noqa: FBT001
) -> None:
    asked, parts = request(shows_thinking=shows_thinking), chunks(deltas, reason)
    stream = streamed(asked, parts)
    expected = whole(asked, parts)
    assert sdk_message(stream) == expected
    found = events(stream)
    # Each block ends before the next one begins.
    indices = [event["index"] for event in found if "index" in event]
    assert indices == sorted(indices)
    starts = [event["index"] for event in found if event["type"] == "content_block_start"]
    assert starts == [*range(len(expected["content"]))]


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([], []),
        (
            [thought("H"), thought("m."), said("Hi")],
            [
                "thinking",
                ("thinking_delta", "H"),
                ("thinking_delta", "m."),
                ("signature_delta", shown_signature("Hm.")),
                "stop",
                "text",
                ("text_delta", "Hi"),
                "stop",
            ],
        ),
        (
            [*called(0, " ", ' {"a"', ": 1}"), *called(1), said("Done.")],
            [
                "tool_use",
                ("input_json_delta", '{"a"'),
                ("input_json_delta", ": 1}"),
                "stop",
                "tool_use",
                "stop",
                "text",
                ("text_delta", "Done."),
                "stop",
            ],
        ),
    ],
)
def test_the_order_of_events(deltas: list[Delta], expected: list[Any]) -> None:
    found = events(streamed(request(), chunks(deltas)))
    assert [*outline(found)] == expected
    kinds = [event["type"] for event in found]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])


def test_hidden_thinking_is_in_its_signature_and_keeps_the_stream_alive() -> None:
    stream = streamed(request(shows_thinking=False), chunks([thought("H"), thought("m.")]))
    signature = hiding_signature("Hm.")
    assert [*outline(events(stream))] == ["thinking", ("signature_delta", signature), "stop"]
    assert hidden_thinking(signature) == "Hm."
    # One besides that of the silence for each piece.
    assert stream.count(b'event: ping\ndata: {"type":"ping"}\n\n') == 3


def test_the_whole_message() -> None:
    deltas = [thought("Hm."), said("Hi"), *called(0, '{"b": 1, "a": 2}')]
    deltas += called(1, '{"b": {}, "a": "cu', call_id="theirs")
    answer = whole(request(), chunks(deltas, FinishReason.TOOL_CALLS))
    assert answer == {
        "id": "msg_0a",
        "type": "message",
        "role": "assistant",
        "model": "demo",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": shown_signature("Hm.")},
            {"type": "text", "text": "Hi", "citations": None},
            {"type": "tool_use", "id": "toolu_1f", "name": "get", "input": {"b": 1, "a": 2}},
            {"type": "tool_use", "id": "theirs", "name": "get", "input": {"b": {}}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            "input_tokens": 9,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 2,
            "output_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 3},
        },
    }
    assert [*answer["content"][2]["input"]] == ["b", "a"]


def test_an_opened_stream_has_nothing_yet_but_its_prompt() -> None:
    started, *_ = events(streamed(request(), chunks([said("Hi")])))
    message = started["message"]
    assert (message["content"], message["stop_reason"]) == ([], None)
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (11, 0)


@pytest.mark.parametrize(
    ("reason", "stopped_by", "tokens", "expected"),
    [
        (FinishReason.STOP, None, 3, ("end_turn", None)),
        (FinishReason.STOP, "END", 3, ("stop_sequence", "END")),
        (FinishReason.STOP, "the model's own", 3, ("end_turn", None)),
        (FinishReason.STOP, 2, 3, ("end_turn", None)),
        (FinishReason.TOOL_CALLS, "END", 3, ("tool_use", None)),
        (FinishReason.LENGTH, None, 7, ("max_tokens", None)),
        (FinishReason.LENGTH, None, 6, ("model_context_window_exceeded", None)),
        (FinishReason.CONTENT_FILTER, None, 3, ("refusal", None)),
    ],
)
def test_why_a_message_stopped(
    reason: FinishReason,
    stopped_by: str | int | None,
    tokens: int,
    expected: tuple[str, str | None],
) -> None:
    parts, usage = chunks([said("Hi")], reason, stopped_by), Usage(11, tokens)
    message = whole(request(), parts, usage)
    assert (message["stop_reason"], message["stop_sequence"]) == expected
    assert sdk_message(streamed(request(), parts, usage)) == message


@pytest.fixture
def identified() -> Iterator[str]:
    token = request_id.set("req_1")
    yield "req_1"
    request_id.reset(token)


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (errors.MalformedBodyError("No."), "invalid_request_error", None),
        (errors.UnsupportedMediaTypeError("No."), "invalid_request_error", 415),
        (errors.AuthenticationError("No."), "authentication_error", None),
        (errors.ModelNotFoundError("No."), "not_found_error", None),
        (errors.OverloadedError("No."), "rate_limit_error", None),
        (errors.UnavailableError("No."), "overloaded_error", 529),
        (errors.ProviderError("No."), "api_error", 502),
        (errors.DeadlineExceededError("No."), "timeout_error", None),
        (errors.InternalError("No."), "api_error", None),
    ],
)
def test_errors(identified: str, error: errors.ApiError, kind: str, status: int | None) -> None:
    encoded = encode_error(error)
    check(ErrorResponse.model_validate(encoded.body))
    assert encoded.body == {
        "type": "error",
        "error": {"type": kind, "message": "No."},
        "request_id": identified,
    }
    assert encoded.http_status == status


def test_errors_name_fields_as_the_api_does() -> None:
    error = errors.InvalidRequestError.of(
        [
            errors.Violation.of("stop", "must not be empty."),
            errors.Violation.of("max_tokens", "must be at least 1."),
        ]
    )
    assert encode_error(error).body["error"] == {
        "type": "invalid_request_error",
        "message": "stop_sequences must not be empty. max_tokens must be at least 1.",
    }


def test_clients_are_told_that_no_conversation_is_kept() -> None:
    error = encode_error(errors.InvalidRequestError.about("thread", "is not supported")).body
    details: Any = error["error"]
    assert details["details"] == {"error_code": "thread_unsupported_request"}


def test_a_broken_stream_ends_with_an_error_that_the_sdk_raises() -> None:
    stream = broken(errors.UnavailableError("The engine died."), [said("Hi")])
    last = stream.decode().split("\n\n")[-2]
    assert json.loads(last.removeprefix("event: error\ndata: "))["type"] == "error"
    with pytest.raises(anthropic.APIStatusError, match="The engine died") as raised:
        sdk_message(stream)
    assert raised.value.type == "overloaded_error"


def test_counted_tokens() -> None:
    assert input_tokens(5) == {"input_tokens": 5}
