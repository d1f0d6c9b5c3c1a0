"""OpenAI's JSON of text completions, whole and streamed: the same object."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ovchat_server.domain.chat import Message, Role
from ovchat_server.domain.completion import (
    Alternative,
    Choice,
    Chunk,
    ChunkChoice,
    Completion,
    CompletionInfo,
    Delta,
    FinishReason,
    TokenLogprob,
    Usage,
)
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.rest.openai import objects

INFO = CompletionInfo("cmpl-1", 1_700_000_000, "demo", "fp_1")
COMMON = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": 1_700_000_000,
    "model": "demo",
    "system_fingerprint": "fp_1",
}
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def sent(value: Any) -> Any:
    """A value as a client parses it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def whole(text: str | None, **fields: Any) -> Any:
    choice = Choice(0, Message(Role.ASSISTANT, (text,)), FinishReason.STOP, **fields)
    return sent(objects.text_completion(Completion(INFO, (choice,), Usage(3, 4))))


def part(text: str | None = None, options: StreamOptions | None = None, **fields: Any) -> Any:
    chunk = Chunk(INFO, (ChunkChoice(0, Delta(content=text), **fields),))
    return sent(objects.text_chunk(chunk, options or StreamOptions()))


def test_a_whole_completion_has_every_key_of_openais() -> None:
    assert whole("Hi") == {
        **COMMON,
        "choices": [
            {
                "index": 0,
                "text": "Hi",
                "logprobs": None,
                "finish_reason": "stop",
                "stop_reason": None,
                "prompt_logprobs": None,
            }
        ],
        "usage": USAGE,
    }


@pytest.mark.parametrize("text", ["Hi", "", None])
def test_a_part_is_of_the_same_kind(text: str | None) -> None:
    assert part(text) == {
        **COMMON,
        "choices": [
            {
                "index": 0,
                "text": text or "",
                "logprobs": None,
                "finish_reason": None,
                "stop_reason": None,
            }
        ],
    }


@pytest.mark.parametrize("reason", [None, "END", 258])
def test_the_last_part_says_why(reason: str | int | None) -> None:
    last = part(None, finish_reason=FinishReason.STOP, stop_reason=reason)["choices"][0]
    assert (last["text"], last["finish_reason"], last["stop_reason"]) == ("", "stop", reason)
    answer = whole("", stop_reason=reason)["choices"][0]
    assert (answer["finish_reason"], answer["stop_reason"]) == ("stop", reason)


def test_tokens_are_told_only_where_asked_for() -> None:
    asked: dict[str, Any] = {"token_ids": (5, 6), "prompt_token_ids": (1, 2, 3)}
    for choice in (whole("x", **asked)["choices"][0], part("x", **asked)["choices"][0]):
        assert (choice["token_ids"], choice["prompt_token_ids"]) == ([5, 6], [1, 2, 3])
    later = part("x", token_ids=())["choices"][0]
    assert later["token_ids"] == []
    assert "prompt_token_ids" not in later
    assert "token_ids" not in part("x")["choices"][0]


def test_log_probabilities_are_lists_of_one_kind_each() -> None:
    tops = (Alternative("b", -0.25, b"b"), Alternative("a", -0.5, b"a"))
    first = TokenLogprob("a", -0.5, b"a", 0, tops)
    half = TokenLogprob("\ufffd", -2.0, b"\xf0", 1)
    logprobs = (first, half)
    expected = {
        "tokens": ["a", "\ufffd"],
        "token_logprobs": [-0.5, -2.0],
        "text_offset": [0, 1],
        "top_logprobs": [{"b": -0.25, "a": -0.5}, None],
    }
    assert whole("x", logprobs=logprobs)["choices"][0]["logprobs"] == expected
    assert part("x", logprobs=logprobs)["choices"][0]["logprobs"] == expected


def test_of_alternatives_that_look_the_same_the_likelier_is_told() -> None:
    tops = tuple(
        Alternative("\ufffd", -float(number), bytes([0xF0 + number])) for number in range(1, 4)
    )
    token = TokenLogprob("\ufffd", -3.0, b"\xf3", 0, tops)
    [told] = whole("x", logprobs=(token,))["choices"][0]["logprobs"]["top_logprobs"]
    assert told == {"\ufffd": -1.0}


@pytest.mark.parametrize(
    ("options", "middle"),
    [
        (StreamOptions(), "absent"),
        (StreamOptions(include_usage=True), None),
    ],
)
def test_usage_has_a_key_on_every_part_where_asked_for(
    options: StreamOptions, middle: str | None
) -> None:
    assert part("x", options).get("usage", "absent") == middle


def test_usage_stands_where_it_is_known() -> None:
    options = StreamOptions(include_usage=True)
    last = sent(objects.text_chunk(Chunk(INFO, (), Usage(3, 4)), options))
    assert (last["choices"], last["usage"]) == ([], USAGE)
