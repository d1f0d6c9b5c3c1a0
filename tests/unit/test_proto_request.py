"""The gRPC door reads the same request as the REST door does from OpenAI's JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ovchat.v1 import chat_pb2, format_pb2, message_pb2, tool_pb2
from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import InvalidRequestError, Violation
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.parameters import CHAT
from ovchat_server.rpc.request import chat_request
from tests.unit.proto_tools import (
    OLDER,
    PAIRS,
    ROLES,
    SCHEMA,
    TOOL,
    choice,
    function,
    message,
    openai,
    proto,
    text,
)


def tagged(key: str) -> format_pb2.ResponseFormat:
    tag = {"type": "structural_tag", "format": {"type": "any_text", key: []}}
    return format_pb2.ResponseFormat(structural_tag=json.dumps(tag))


def refused_by_proto(**fields: Any) -> tuple[Violation, ...]:
    with pytest.raises(InvalidRequestError) as caught:
        chat_request(proto(**fields), stream=False)
    return caught.value.violations


@pytest.mark.parametrize("name", PAIRS)
def test_both_doors_read_the_same_request(name: str) -> None:
    typed, plain = PAIRS[name]
    read = chat_request(proto(**typed), stream=False)
    assert read == read_chat_request(openai(**plain))
    assert read.ignored == ()


def image(**fields: Any) -> dict[str, Any]:
    """A message with an image by value, after a text."""
    sent = message_pb2.Image(**{"data": b"GIF89a", "mime_type": "image/gif", **fields})
    return message(role=ROLES["user"], content=[*text("a"), message_pb2.ContentPart(image=sent)])


@pytest.mark.parametrize(("detail", "low"), [(None, False), ("high", False), ("low", True)])
def test_an_image_by_value_is_its_bytes(detail: str | None, low: bool) -> None:  # noqa: FBT001
    [sent] = chat_request(proto(**image(detail=detail)), stream=False).messages
    assert sent.content == ("a", Image(data=b"GIF89a", low_detail=low))
    assert [str(item.field) for item in sent.images] == ["messages[0].content[1].image"]


def test_unknown_keys_in_a_structural_tags_text_are_refused() -> None:
    assert chat_request(proto(response_format=tagged("excludes")), stream=False).ignored == ()
    [violation] = refused_by_proto(response_format=tagged("typo"))
    assert violation.message == "response_format.format.typo is not a known parameter."


def test_the_table_covers_every_served_field() -> None:
    covered = {field for typed, _ in PAIRS.values() for field in typed}
    # A stream is another RPC, and its options mean something there only.
    assert covered >= CHAT.served - {"stream", "stream_options"} - OLDER


def test_every_field_of_the_contract_is_known_to_the_rules() -> None:
    fields = set(chat_pb2.CreateChatCompletionRequest.DESCRIPTOR.fields_by_name)
    assert fields <= CHAT.served | CHAT.accepted | CHAT.refused.keys()


def test_parts_beyond_the_bound_are_not_read_one_by_one() -> None:
    # Each is wrong.
    parts = message_pb2.Message(content=[message_pb2.ContentPart()] * 1000)
    [violation] = refused_by_proto(messages=[parts] * 17)
    assert violation.field == "messages"
    assert "16384" in violation.message


def test_a_streams_options_are_read() -> None:
    options = chat_pb2.StreamOptions(include_usage=True, include_obfuscation=False)
    read = chat_request(proto(stream_options=options), stream=True)
    assert read.stream == StreamOptions(include_usage=True)
    assert chat_request(proto(), stream=True).stream == StreamOptions()
    assert chat_request(proto(), stream=False).stream is None


@pytest.mark.parametrize("value", [SCHEMA, {"b": {"z": 1, "a": [{"y": 1, "x": 2}]}, "a": None}])
def test_json_in_strings_keeps_the_order_of_its_keys(value: Any) -> None:
    fields = proto(
        tools=[function(name="f", parameters=json.dumps(value))],
        chat_template_kwargs=json.dumps(value),
        documents=["{}", json.dumps(value)],
    )
    request = chat_request(fields, stream=False)
    assert json.dumps(request.tools[0].parameters) == json.dumps(value)
    assert json.dumps(request.template_arguments) == json.dumps(value)
    assert json.dumps(request.documents[1]) == json.dumps(value)


@pytest.mark.parametrize("bad", ["", "{", "{'a': 1}", "{} x", "NaN", "[" * 100_000])
@pytest.mark.parametrize(
    ("path", "build"),
    [
        ("chat_template_kwargs", lambda bad: {"chat_template_kwargs": bad}),
        (
            "tools[1].function.parameters",
            lambda bad: {"tools": [TOOL, function(name="g", parameters=bad)]},
        ),
        ("documents[1]", lambda bad: {"documents": ["{}", bad]}),
    ],
)
def test_bad_json_in_a_string_names_the_field(path: str, build: Any, bad: str) -> None:
    (violation,) = refused_by_proto(**build(bad))
    assert (violation.field, violation.code) == (path, "invalid_json")
    assert violation.message.startswith(f"{path} must be JSON in a string: ")
    assert len(violation.message) < 300


def test_json_in_a_string_must_be_an_object() -> None:
    assert [v.field for v in refused_by_proto(chat_template_kwargs="[]")] == [
        "chat_template_kwargs"
    ]
    (violation,) = refused_by_proto(tools=[function(name="f", parameters="[]")])
    assert violation.field == "tools[0].function.parameters"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        (message(content=text("x")), "messages[0].role"),
        (message(role=99, content=text("x")), "messages[0].role"),
        (
            message(role=ROLES["user"], content=[message_pb2.ContentPart()]),
            "messages[0].content[0]",
        ),
        (
            message(
                role=ROLES["user"],
                content=[message_pb2.ContentPart(image_url=message_pb2.ImageUrl(detail="x"))],
            ),
            "messages[0].content[0].image_url.url",
        ),
        (image(data=b""), "messages[0].content[1].image.data"),
        (image(mime_type=""), "messages[0].content[1].image.mime_type"),
        (image(mime_type="image/tiff"), "messages[0].content[1].image.mime_type"),
        (image(detail="best"), "messages[0].content[1].image.detail"),
        (
            message(role=ROLES["assistant"], tool_calls=[message_pb2.ToolCall(id="c")]),
            "messages[0].tool_calls[0].function",
        ),
        (message(role=message_pb2.ROLE_TOOL, content=text("x")), "messages[0].tool_call_id"),
        ({"tools": [TOOL, tool_pb2.Tool()]}, "tools[1]"),
        ({"tools": [tool_pb2.Tool(custom=tool_pb2.CustomTool(name="c"))]}, "tools[0].custom"),
        ({"tools": [function(description="x")]}, "tools[0].function.name"),
        ({"tool_choice": tool_pb2.ToolChoice()}, "tool_choice"),
        ({"tool_choice": choice("UNSPECIFIED")}, "tool_choice"),
        ({"tool_choice": choice("REQUIRED")}, "tool_choice"),
        (
            {"tools": [TOOL], "tool_choice": tool_pb2.ToolChoice(function_name="other")},
            "tool_choice",
        ),
        (
            {
                "tools": [TOOL],
                "tool_choice": tool_pb2.ToolChoice(
                    allowed_tools=tool_pb2.AllowedTools(function_names=["f"])
                ),
            },
            "tool_choice.allowed_tools.mode",
        ),
        ({"response_format": format_pb2.ResponseFormat()}, "response_format"),
        (
            {
                "response_format": format_pb2.ResponseFormat(
                    json_schema=format_pb2.JsonSchemaFormat(name="x")
                )
            },
            "response_format.json_schema.schema",
        ),
        (
            {
                "response_format": format_pb2.ResponseFormat(
                    json_schema=format_pb2.JsonSchemaFormat(name="x", schema="[]")
                )
            },
            "response_format.json_schema.schema",
        ),
        ({"structured_outputs": format_pb2.StructuredOutputs()}, "structured_outputs"),
        ({"logit_bias": {1: 200.0}}, "logit_bias"),
        ({"allowed_token_ids": [1] * 4097}, "allowed_token_ids"),
        ({"bad_words": ["x", ""]}, "bad_words[1]"),
        ({"presence_penalty": float("nan")}, "presence_penalty"),
        ({"prompt_logprobs": -1}, "prompt_logprobs"),
        ({"thinking_token_budget": -2}, "thinking_token_budget"),
        ({"n": 0}, "n"),
        ({"documents": ["{}", "[]"]}, "documents[1]"),
        ({"chat_template_kwargs": '{"messages": []}'}, "chat_template_kwargs"),
        ({"temperature": float("nan")}, "temperature"),
        ({"best_of": 21}, "best_of"),
        ({"stream_options": chat_pb2.StreamOptions()}, "stream_options"),
    ],
)
def test_what_is_unset_or_not_served_is_refused_by_name(fields: dict[str, Any], path: str) -> None:
    assert [violation.field for violation in refused_by_proto(**fields)] == [path]


def test_an_empty_request_misses_what_is_required() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        chat_request(chat_pb2.CreateChatCompletionRequest(), stream=False)
    assert [violation.field for violation in caught.value.violations] == ["messages"]


def test_a_field_that_breaks_a_rule_of_the_shared_rules_has_the_contracts_path() -> None:
    """Parts of a path that the contract does not have are left out; the message keeps them."""
    (violation,) = refused_by_proto(logit_bias={1: 2.0, 7: 300.0})
    assert violation.field == "logit_bias"
    assert violation.message.startswith("logit_bias.7 must be at least -100 and at most 100")
    (violation,) = refused_by_proto(
        messages=[
            message_pb2.Message(role=ROLES["user"], content=text("a")),
            message_pb2.Message(
                role=ROLES["user"], content=[*text("b"), message_pb2.ContentPart()]
            ),
        ]
    )
    assert violation.field == "messages[1].content[1]"
    assert violation.message.startswith("messages[1].content[1] requires one of: text, ")
