"""Requests in Anthropic's API: its SDK's types take them, and nothing is left out in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ovchat_server.domain.chat import ChatRequest, Message, Role
from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.providers.anthropic.kind import AnthropicKind
from tests.messages_api import check_request
from tests.parameters.case import said
from tests.parameters.endpoints import WEATHER
from tests.unit.providers.cases import CALL, CASES, CONVERSATION, PIXEL, SCHEMA, TIME, VLLMS, read

if TYPE_CHECKING:
    from ovchat_server.domain.text import TextRequest
    from tests.parameters.case import Fields

KIND = AnthropicKind("claude", 4096)
REFUSED = VLLMS | {
    "n",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    # Above 1, and where it is "minimal".
    "temperature",
    "reasoning_effort",
}
IGNORED = {
    "messages[1].name",
    "messages[1].content[2].image_url.detail",
    "messages[2].reasoning_content",
    "num_assistant_tokens",
    "max_ngram_size",
    "assistant_confidence_threshold",
    "prediction",
}
TEXT = {"type": "text", "text": "Hi"}
USER = {"role": "user", "content": [TEXT]}
FUNCTION: Any = WEATHER["function"]
GET_WEATHER: Fields = {
    "name": "get_weather",
    "description": FUNCTION["description"],
    "input_schema": FUNCTION["parameters"],
}
GET_TIME: Fields = {"name": "get_time", "input_schema": {"type": "object"}, "strict": True}
ALLOWED: Fields = {"type": "function", "function": {"name": "get_time"}}


def sent(request: ChatRequest | TextRequest) -> Fields:
    """The body as the provider parses it."""
    wire = KIND.request(request, "m")
    assert wire.path == "/messages"
    body: Fields = msgspec.json.decode(msgspec.json.encode(wire.body))
    return body


def chat(*messages: Fields, **fields: Any) -> ChatRequest:
    given = {"model": "x", "messages": list(messages) or said("Hi")["messages"], **fields}
    request = read("chat", given)
    assert isinstance(request, ChatRequest)
    return request


def test_each_parameter_is_sent_or_refused_by_the_callers_name_or_ignored() -> None:
    refused: set[str] = set()
    ignored: set[str] = set()
    for case in CASES:
        endpoint, fields = case.values
        assert isinstance(endpoint, str)
        assert isinstance(fields, dict)
        if endpoint != "chat":
            continue
        request = read(endpoint, fields)
        try:
            check_request(sent(request))
        except InvalidRequestError as error:
            refused |= _refused(error, fields)
        else:
            ignored |= set(KIND.request(request, "m").ignored)

    assert (refused, ignored) == (REFUSED, IGNORED)


def _refused(error: InvalidRequestError, fields: Fields) -> set[str]:
    """The fields that an error is about, which are the caller's."""
    names = {violation.field for violation in error.violations}
    assert {name.split(".")[0] for name in names} <= fields.keys()
    assert error.code in ("unsupported_parameter", "unsupported_value")
    assert "by the provider 'claude'." in error.message
    return names


def test_the_check_of_requests_finds_unknown_fields() -> None:
    part = {"type": "text", "text": "Hi", "detail": "low"}
    with pytest.raises(AssertionError):
        check_request(
            {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [part]}]}
        )


def test_a_conversation_becomes_turns() -> None:
    late: Fields = {"role": "system", "content": "c"}

    body = sent(chat(*CONVERSATION, late, {"role": "user", "content": "So?"}))

    base64 = {"type": "base64", "media_type": "image/png", "data": PIXEL.partition(",")[2]}
    call = {"type": "tool_use", "name": "get_weather", "input": {"city": "Rome"}}
    assert body["system"] == [{"type": "text", "text": text} for text in "abc"]
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": base64},
                {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Rome"}]},
        {"role": "user", "content": [{"type": "text", "text": "And the weather?"}]},
        {
            "role": "assistant",
            "content": [{**call, "id": "call_1"}, {**call, "id": "call_2"}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": f"call_{number}",
                    "content": [{"type": "text", "text": text}],
                }
                for number, text in ((1, "sunny"), (2, "still sunny"))
            ]
            + [{"type": "text", "text": "So?"}],
        },
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {}),
        ({"max_completion_tokens": 7}, {"max_tokens": 7}),
        (
            {"temperature": 0.5, "top_p": 0.5, "top_k": 5, "stop": ["a"]},
            {"temperature": 0.5, "top_p": 0.5, "top_k": 5, "stop_sequences": ["a"]},
        ),
        # They disable it, as if it were left out.
        ({"top_k": -1}, {}),
        ({"stream": True}, {"stream": True}),
        (
            {"reasoning_effort": "high"},
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "high"},
            },
        ),
        (
            {"reasoning_effort": "low", "include_reasoning": False},
            {
                "thinking": {"type": "adaptive", "display": "omitted"},
                "output_config": {"effort": "low"},
            },
        ),
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ({"thinking_token_budget": 0}, {"thinking": {"type": "disabled"}}),
        (
            {"thinking_token_budget": 1024, "reasoning_effort": "high"},
            {
                "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"},
                "output_config": {"effort": "high"},
            },
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "description": "d", "schema": SCHEMA},
                }
            },
            {
                "output_config": {
                    "format": {"type": "json_schema", "schema": {"description": "d", **SCHEMA}}
                }
            },
        ),
        ({"tools": [WEATHER, TIME]}, {"tools": [GET_WEATHER, GET_TIME]}),
        (
            {"tools": [TIME], "parallel_tool_calls": False},
            {
                "tools": [GET_TIME],
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            },
        ),
        (
            {"tools": [TIME], "tool_choice": "none"},
            {"tools": [GET_TIME], "tool_choice": {"type": "none"}},
        ),
        (
            {"tools": [TIME], "tool_choice": "required"},
            {"tools": [GET_TIME], "tool_choice": {"type": "any"}},
        ),
        (
            {"tools": [WEATHER, TIME], "tool_choice": ALLOWED},
            {
                "tools": [GET_WEATHER, GET_TIME],
                "tool_choice": {
                    "type": "tool",
                    "name": "get_time",
                    "disable_parallel_tool_use": True,
                },
            },
        ),
        (
            {
                "tools": [WEATHER, TIME],
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "required", "tools": [ALLOWED]},
                },
            },
            {"tools": [GET_TIME], "tool_choice": {"type": "any"}},
        ),
    ],
)
def test_what_is_sent(fields: Fields, expected: Fields) -> None:
    body = sent(chat(**fields))

    check_request(body)
    assert body == {"model": "m", "max_tokens": 4096, "messages": [USER], **expected}


def test_a_last_message_of_the_assistant_is_continued_where_that_is_asked_for() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Good"}]

    body = sent(chat(*messages, continue_final_message=True, add_generation_prompt=False))

    prefill = {"role": "assistant", "content": [{"type": "text", "text": "Good"}]}
    assert body["messages"] == [USER, prefill]
    assert body.keys() == {"model", "max_tokens", "messages"}


def test_what_says_nothing_is_left_out() -> None:
    """The API takes no empty texts, and no messages without content."""
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": ""}]
    result = {"role": "tool", "tool_call_id": "call_1", "content": ""}
    calls = {"role": "assistant", "content": "", "tool_calls": [CALL]}

    body = sent(chat(*messages, {"role": "user", "content": "Hi"}, calls, result))

    check_request(body)
    [asked, called, answered] = body["messages"]
    assert asked["content"] == [TEXT, TEXT]
    assert [block["type"] for block in called["content"]] == ["tool_use"]
    assert answered["content"] == [{"type": "tool_result", "tool_use_id": "call_1"}]


def _calls(arguments: str) -> Fields:
    function = {"name": "get_weather", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{**CALL, "function": function}]}


def _seen(role: str = "user", **image: Any) -> ChatRequest:
    path = FieldPath.of("messages", 0, "content", 0, "image_url")
    seen = Message(Role(role), (Image(field=path, **image),))
    return ChatRequest("x", (seen, Message(Role.USER, ("Hi",))))


IMAGE = "messages[0].content[0].image_url"


@pytest.mark.parametrize(
    ("request_", "fields"),
    [
        (chat(_calls("{"), USER), ["messages[0].tool_calls[0].function.arguments"]),
        (chat(_calls("[1]"), USER), ["messages[0].tool_calls[0].function.arguments"]),
        (_seen(url="file:///a.png"), [IMAGE]),
        (_seen(url="data:image/png;base64,Qk0AAAAA"), [IMAGE]),
        (_seen(url="data:image/png,%89PNG"), [IMAGE]),
        (_seen(url="data:image/png;base64,?"), [IMAGE]),
        (_seen(data=b"BM12"), [IMAGE]),
        (_seen(role="system", url=PIXEL), [IMAGE]),
        (_seen(role="assistant", url=PIXEL), [IMAGE]),
        (chat({"role": "system", "content": "a"}), ["messages"]),
        (chat(USER, {"role": "assistant", "content": "a"}), ["messages[1]"]),
        (
            chat(USER, continue_final_message=True, add_generation_prompt=False),
            ["continue_final_message"],
        ),
        (ChatRequest("x", (Message(Role.USER, ("Hi",)),), drops_oldest=True), ["truncation"]),
        (chat(USER, thinking_token_budget=1023), ["thinking_token_budget"]),
        # All at once.
        (chat(USER, n=2, temperature=1.5, seed=1), ["temperature", "n", "seed"]),
        (read("text", {"model": "x", "prompt": "Hi"}), ["prompt"]),
    ],
)
def test_what_the_api_cannot_do_is_refused(
    request_: ChatRequest | TextRequest, fields: list[str]
) -> None:
    with pytest.raises(InvalidRequestError, match="by the provider 'claude'") as caught:
        KIND.request(request_, "m")
    assert [violation.field for violation in caught.value.violations] == fields


def test_images_that_are_bytes_are_sent_in_base64() -> None:
    [turn] = sent(_seen(data=b"\xff\xd8\xff\xe0"))["messages"]

    source = {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4A=="}
    assert turn["content"][0] == {"type": "image", "source": source}


def test_the_key_and_the_version_are_headers() -> None:
    version = {"anthropic-version": "2023-06-01"}
    assert KIND.headers("k") == {"x-api-key": "k", **version}
    assert KIND.headers("") == version
