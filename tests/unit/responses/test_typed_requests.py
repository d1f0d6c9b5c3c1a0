"""Requests as messages and as OpenAI's JSON: pairs that mean the same."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import ParseDict

from ovchat.v1 import response_pb2
from ovchat_server.domain.content import IMAGE_TYPES
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.limits import Limits
from ovchat_server.domain.responses.parameters import RESPONSES
from ovchat_server.domain.responses.reading import read_responses_request
from ovchat_server.rpc.response_request import response_request

HI = {"role": "user", "content": "Hi"}
TYPED_HI = {"message": {"role": "ROLE_USER", "content": [{"input_text": "Hi"}]}}
PATCH = {"name": "patch", "namespace": "files"}
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a conversation": (
        {
            "input": [
                TYPED_HI,
                {"reasoning": {"summary": [{"summary_text": "Hm"}]}},
                {
                    "message": {
                        "id": "msg_1",
                        "status": "RESPONSE_STATUS_COMPLETED",
                        "role": "ROLE_ASSISTANT",
                        "content": [
                            {"output_text": {"text": "Yes", "logprobs": [{"token": "Yes"}]}},
                            {"refusal": "No"},
                        ],
                    }
                },
                {"function_call": {"call_id": "a", "name": "get", "arguments": "{}"}},
                {"custom_tool_call": {"call_id": "b", "input": "go", **PATCH}},
                {"function_call_output": {"call_id": "a", "output": [{"input_text": "done"}]}},
                {"custom_tool_call_output": {"call_id": "b"}},
                {"message": {"role": "ROLE_USER"}},
            ],
        },
        {
            "input": [
                HI,
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "output_text", "text": "Yes"},
                        {"type": "refusal", "refusal": "No"},
                    ],
                },
                {"type": "function_call", "call_id": "a", "name": "get", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "b", "input": "go", **PATCH},
                {"type": "function_call_output", "call_id": "a", "output": "done"},
                {"type": "custom_tool_call_output", "call_id": "b", "output": []},
                {"role": "user", "content": []},
            ],
        },
    ),
    "images": (
        {
            "input": [
                {
                    "message": {
                        "role": "ROLE_USER",
                        "content": [
                            {"input_image": {"image_url": "https://a/b.png", "detail": "low"}},
                            {"image": {"data": "R0lG", "mime_type": "image/gif", "detail": "low"}},
                        ],
                    }
                }
            ],
        },
        {
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_image", "image_url": "https://a/b.png", "detail": "low"},
                        {
                            "type": "input_image",
                            "image_url": "data:image/gif;base64,R0lG",
                            "detail": "low",
                        },
                    ],
                }
            ],
        },
    ),
    "tools": (
        {
            "input": [TYPED_HI],
            "tools": [
                {"function": {"name": "get", "parameters": '{"type": "object"}', "strict": True}},
                {
                    "namespace": {
                        "name": "files",
                        "description": "Of files.",
                        "tools": [
                            {
                                "custom": {
                                    "name": "patch",
                                    "format": {
                                        "grammar": {
                                            "syntax": "RESPONSE_GRAMMAR_SYNTAX_REGEX",
                                            "definition": "a+",
                                        }
                                    },
                                }
                            }
                        ],
                    }
                },
            ],
            "tool_choice": {
                "allowed_tools": {
                    "mode": "TOOL_CHOICE_MODE_REQUIRED",
                    "tools": [{"function": {"name": "get"}}, {"custom": PATCH}],
                }
            },
            "parallel_tool_calls": False,
        },
        {
            "input": [HI],
            "tools": [
                {
                    "type": "function",
                    "name": "get",
                    "parameters": {"type": "object"},
                    "strict": True,
                },
                {
                    "type": "namespace",
                    "name": "files",
                    "description": "Of files.",
                    "tools": [
                        {
                            "type": "custom",
                            "name": "patch",
                            "format": {"type": "grammar", "syntax": "regex", "definition": "a+"},
                        }
                    ],
                },
            ],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "get"}, {"type": "custom", **PATCH}],
            },
            "parallel_tool_calls": False,
        },
    ),
    "the rest": (
        {
            "model": "demo",
            "input": [TYPED_HI],
            "instructions": "Be brief.",
            "previous_response_id": "resp_1",
            "store": False,
            "metadata": {"a": "b"},
            "text": {"format": {"json_object": {}}},
            "reasoning": {"effort": "low", "summary": "auto"},
            "truncation": "auto",
            "include": ["message.output_text.logprobs"],
            "top_logprobs": 2,
            "thinking_token_budget": 0,
            "chat_template_kwargs": '{"a": 1}',
            "logit_bias": {"5": 1.5},
        },
        {
            "model": "demo",
            "input": "Hi",
            "instructions": "Be brief.",
            "previous_response_id": "resp_1",
            "store": False,
            "metadata": {"a": "b"},
            "text": {"format": {"type": "json_object"}},
            "reasoning": {"effort": "low", "summary": "auto"},
            "truncation": "auto",
            "include": ["message.output_text.logprobs"],
            "top_logprobs": 2,
            "thinking_token_budget": 0,
            "chat_template_kwargs": {"a": 1},
            "logit_bias": {"5": 1.5},
        },
    ),
    "one of some texts": (
        {"input": [TYPED_HI], "structured_outputs": {"choice": {"values": ["yes", "no"]}}},
        {"input": "Hi", "structured_outputs": {"choice": ["yes", "no"]}},
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_a_message_means_what_its_json_means(pair: str) -> None:
    typed, fields = PAIRS[pair]
    message = ParseDict(typed, response_pb2.CreateResponseRequest())

    found = response_request(message, stream=True)
    expected = read_responses_request({**fields, "stream": True}, strict=True)

    assert found.chat == expected.chat
    assert found.tools == expected.tools
    for name in ("instructions", "previous_response_id", "store", "summarized", "ignored"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.repeated["metadata"] == expected.repeated["metadata"]


def content(role: str = "ROLE_USER", **part: Any) -> dict[str, Any]:
    return {"input": [{"message": {"role": role, "content": [part]}}]}


PART = "input[0].message.content[0]"
TOOLS = {"namespace": {"name": "a", "tools": [{"namespace": {"name": "b"}}]}}
FAULTS: list[tuple[dict[str, Any], str, str]] = [
    (content(image={"mime_type": "image/gif"}), f"{PART}.image.data", "is required."),
    (content(image={"data": "R0lG"}), f"{PART}.image.mime_type", "is required."),
    (
        content(image={"data": "R0lG", "mime_type": "image/tiff"}),
        f"{PART}.image.mime_type",
        f"must be one of {', '.join(map(repr, IMAGE_TYPES))}, got 'image/tiff'.",
    ),
    (
        content(summary_text="Hm"),
        f"{PART}.summary_text",
        "must be one of 'input_text', 'output_text', 'input_image', got 'summary_text'.",
    ),
    (
        {"input": [TYPED_HI], "tools": [TOOLS]},
        "tools[0].namespace.tools[0].namespace",
        "is 'namespace': no namespace may stand in another.",
    ),
]


@pytest.mark.parametrize(("typed", "field", "complaint"), FAULTS)
def test_a_fault_has_the_contracts_path(typed: dict[str, Any], field: str, complaint: str) -> None:
    message = ParseDict(typed, response_pb2.CreateResponseRequest())
    with pytest.raises(InvalidRequestError) as caught:
        response_request(message, stream=False)
    assert caught.value.param == field
    assert caught.value.message == f"{field} {complaint}"


def test_the_contract_has_every_parameter_that_is_served() -> None:
    fields = response_pb2.CreateResponseRequest.DESCRIPTOR.fields_by_name
    assert {*fields} == RESPONSES.served - {"stream", "stream_options"}


def test_parts_are_counted_before_they_are_read() -> None:
    message = ParseDict(PAIRS["a conversation"][0], response_pb2.CreateResponseRequest())
    with pytest.raises(InvalidRequestError, match="input"):
        response_request(message, stream=False, limits=Limits(max_total_parts=4))
