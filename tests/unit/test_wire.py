"""OpenAI's JSON, key by key: what its SDKs, and then OVMS's and vLLM's callers, rely on."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from ovchat.v1 import chat_pb2
from ovchat_server.domain.chat import Message, Role, ToolCall
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
    ToolCallDelta,
    Usage,
)
from ovchat_server.domain.errors import (
    ApiError,
    ContextLengthExceededError,
    InternalError,
    InvalidRequestError,
    ModelNotFoundError,
    UnavailableError,
    Violation,
)
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.models import Capability, ModelState, ModelStatus
from ovchat_server.rest.openai import objects
from ovchat_server.rest.openai.models import model_object
from ovchat_server.rpc import response

INFO = CompletionInfo("chatcmpl-1", 1_700_000_000, "demo", "fp_1")
COMMON = {
    "id": "chatcmpl-1",
    "created": 1_700_000_000,
    "model": "demo",
    "system_fingerprint": "fp_1",
}


def sent(value: Any) -> Any:
    """A value as a client parses it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def chunk(
    *choices: ChunkChoice, usage: Usage | None = None, options: StreamOptions | None = None
) -> Any:
    return sent(objects.chat_chunk(Chunk(INFO, choices, usage), options or StreamOptions()))


def choice(delta: Delta, reason: FinishReason | None = None, index: int = 0) -> Any:
    return chunk(ChunkChoice(index, delta, reason))["choices"][0]


def completion(message: Message, reason: FinishReason = FinishReason.STOP, **fields: Any) -> Any:
    answer = Choice(0, message, reason, **fields)
    return sent(objects.chat_completion(Completion(INFO, (answer,), Usage(3, 4))))


def test_a_whole_answer_has_every_key_of_openais() -> None:
    assert completion(Message(Role.ASSISTANT, ("Hi",))) == {
        **COMMON,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
                "stop_reason": None,
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        "prompt_logprobs": None,
    }


def test_a_whole_answer_may_reason_and_call() -> None:
    call = ToolCall("call_1", "f", '{"z":1,"a":2}')
    message = Message(Role.ASSISTANT, (), tool_calls=(call,), reasoning_content="Hm")
    answer = completion(message, FinishReason.TOOL_CALLS)["choices"][0]
    assert answer["finish_reason"] == "tool_calls"
    assert answer["message"] == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "reasoning_content": "Hm",
        "reasoning": "Hm",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "f", "arguments": '{"z":1,"a":2}'},
            }
        ],
    }


@pytest.mark.parametrize("reason", ["END", 258])
def test_what_stopped_the_answer_is_told(reason: str | int) -> None:
    answer = completion(Message(Role.ASSISTANT, ("",)), stop_reason=reason)["choices"][0]
    assert (answer["stop_reason"], answer["message"]["content"]) == (reason, "")
    last = chunk(ChunkChoice(0, Delta(), FinishReason.STOP, stop_reason=reason))["choices"][0]
    assert last["stop_reason"] == reason


HALF = TokenLogprob("\ufffd", -0.25, b"\xf0\x9f", 0)
WORD = TokenLogprob(" a", -1.5, b" a", 1)
LIKELIER = Alternative("\ufffd", -0.25, b"\xf0\x9f")
ITSELF = Alternative(" a", -1.5, b" a")
REPORTED = (
    {"token": "\ufffd", "logprob": -0.25, "bytes": [0xF0, 0x9F]},
    {"token": " a", "logprob": -1.5, "bytes": [32, 97]},
)


def test_log_probabilities_are_openais() -> None:
    logprobs = (HALF, dataclasses.replace(WORD, alternatives=(LIKELIER, ITSELF)))
    expected = {
        "content": [
            {**REPORTED[0], "top_logprobs": []},
            {**REPORTED[1], "top_logprobs": [REPORTED[0], REPORTED[1]]},
        ],
        "refusal": None,
    }
    answer = completion(Message(Role.ASSISTANT, ("x",)), logprobs=logprobs)["choices"][0]
    assert answer["logprobs"] == expected
    part = chunk(ChunkChoice(0, Delta(content="x"), logprobs=logprobs))["choices"][0]
    assert part["logprobs"] == expected


def test_several_choices_stand_in_their_order() -> None:
    answers = tuple(
        Choice(index, Message(Role.ASSISTANT, (str(index),)), FinishReason.STOP)
        for index in range(3)
    )
    whole = sent(objects.chat_completion(Completion(INFO, answers, Usage(3, 4))))
    assert [item["index"] for item in whole["choices"]] == [0, 1, 2]
    assert [item["message"]["content"] for item in whole["choices"]] == ["0", "1", "2"]


def test_tokens_of_reasoning_are_told_where_a_model_reasons() -> None:
    answer = Completion(INFO, (), Usage(3, 4, reasoning_tokens=0))
    assert sent(objects.chat_completion(answer))["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


@pytest.mark.parametrize("cached", [None, 0, 2])
def test_tokens_of_images_are_told_where_there_are_any(cached: int | None) -> None:
    answer = Completion(INFO, (), Usage(3, 4, cached_tokens=cached, image_tokens=2))
    details = (
        {"image_tokens": 2} if cached is None else {"cached_tokens": cached, "image_tokens": 2}
    )
    assert sent(objects.chat_completion(answer))["usage"]["prompt_tokens_details"] == details
    typed = response.chat_completion(answer).usage.prompt_tokens_details
    assert typed == chat_pb2.PromptTokensDetails(**details)


def test_the_first_chunk_gives_the_role_and_no_content_yet() -> None:
    assert chunk(ChunkChoice(0, Delta(role=Role.ASSISTANT))) == {
        **COMMON,
        "object": "chat.completion.chunk",
        "choices": [
            {
                "index": 0,
                "delta": {"role": "assistant", "content": ""},
                "logprobs": None,
                "finish_reason": None,
            }
        ],
    }


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        (Delta(content="Hi"), {"content": "Hi"}),
        (Delta(content=""), {"content": ""}),
        (Delta(role=Role.ASSISTANT, content="Hi"), {"role": "assistant", "content": "Hi"}),
        (Delta(reasoning_content="Hm"), {"reasoning_content": "Hm", "reasoning": "Hm"}),
        (
            Delta(content="a", reasoning_content="b"),
            {"content": "a", "reasoning_content": "b", "reasoning": "b"},
        ),
        (
            Delta(tool_calls=(ToolCallDelta(0, "call_1", "f", "{}"),)),
            {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                    }
                ]
            },
        ),
        # What was said once must not come again: the SDKs append.
        (
            Delta(tool_calls=(ToolCallDelta(1, arguments='{"a"'),)),
            {"tool_calls": [{"index": 1, "function": {"arguments": '{"a"'}}]},
        ),
        (Delta(), {}),
    ],
)
def test_a_delta_has_only_what_is_new(delta: Delta, expected: dict[str, Any]) -> None:
    assert choice(delta)["delta"] == expected


@pytest.mark.parametrize("reason", FinishReason)
def test_the_last_chunk_has_an_empty_delta_and_says_why(reason: FinishReason) -> None:
    assert choice(Delta(), reason) == {
        "index": 0,
        "delta": {},
        "logprobs": None,
        "finish_reason": str(reason),
        "stop_reason": None,
    }


@pytest.mark.parametrize("index", [0, 3])
def test_the_index_is_always_there(index: int) -> None:
    assert choice(Delta(content="x"), index=index)["index"] == index


def test_usage_is_on_every_chunk_where_asked_for_and_null_before_the_last() -> None:
    middle = ChunkChoice(0, Delta(content="x"))
    asked = StreamOptions(include_usage=True)
    assert chunk(middle, options=asked)["usage"] is None
    last = chunk(usage=Usage(3, 4), options=asked)
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert "usage" not in chunk(middle)


def test_usage_so_far_is_on_every_chunk_where_asked_for() -> None:
    options = StreamOptions(include_usage=True, continuous_usage=True)
    middle = chunk(ChunkChoice(0, Delta(content="x")), usage=Usage(3, 1), options=options)
    assert middle["usage"] == {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            InvalidRequestError.of(
                [Violation.of("top_p", "is bad."), Violation.of("n", "is bad.")]
            ),
            {
                "message": "top_p is bad. n is bad.",
                "type": "invalid_request_error",
                "param": "top_p",
                "code": "invalid_value",
            },
        ),
        (
            ContextLengthExceededError("Too long."),
            {
                "message": "Too long.",
                "type": "invalid_request_error",
                "param": None,
                "code": "context_length_exceeded",
            },
        ),
        (
            ModelNotFoundError("No."),
            {
                "message": "No.",
                "type": "invalid_request_error",
                "param": None,
                "code": "model_not_found",
            },
        ),
        (
            UnavailableError("Later."),
            {
                "message": "Later.",
                "type": "server_error",
                "param": None,
                "code": "service_unavailable",
            },
        ),
        (
            InternalError("Oh."),
            {"message": "Oh.", "type": "server_error", "param": None, "code": "internal_error"},
        ),
    ],
)
def test_an_error_is_openais_object(error: ApiError, expected: dict[str, Any]) -> None:
    assert sent(objects.error(error)) == {"error": expected}


@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize(("context", "shown"), [(2048, 2048), (0, None)])
def test_a_model_is_listed_as_openai_and_vllm_do(
    context: int,
    shown: int | None,
    control: bool,  # noqa: FBT001
) -> None:
    capabilities = (Capability.CHAT, Capability.TOOLS)
    status = ModelStatus(
        "demo", 1, context, capabilities, ModelState.READY, sampling_control=control
    )
    assert sent(model_object(status)) == {
        "id": "demo",
        "object": "model",
        "created": 1,
        "owned_by": "ovchat",
        "max_model_len": shown,
        "context_length": shown,
        "capabilities": ["chat", "tools"],
        "input_modalities": ["text"],
        "type": "text-generation",
        "provider": "openvino",
        "state": "ready",
        "sampling_control": control,
    }
