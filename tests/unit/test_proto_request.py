"""The gRPC door reads the same request as the REST door does from OpenAI's JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ovchat.v1 import chat_pb2, format_pb2, message_pb2, tool_pb2
from ovchat_server.api.chat_request import read_chat_request
from ovchat_server.api.errors import InvalidRequestError, Violation
from ovchat_server.api.parameters import ACCEPTED, SERVED, UNSUPPORTED
from ovchat_server.rpc.request import chat_request_fields

# Keys in an order that neither sorting nor a protobuf map would give.
SCHEMA = {
    "type": "object",
    "properties": {"zeta": {"type": "string"}, "alpha": {"type": "number"}, "mid": {}},
    "required": ["zeta"],
}
SCHEMA_TEXT = json.dumps(SCHEMA)
CALL_ARGUMENTS = '{"zeta": "x",  "alpha": 1}'

ROLES = {
    "system": message_pb2.ROLE_SYSTEM,
    "developer": message_pb2.ROLE_DEVELOPER,
    "user": message_pb2.ROLE_USER,
    "assistant": message_pb2.ROLE_ASSISTANT,
}


def text(*parts: str) -> list[message_pb2.ContentPart]:
    return [message_pb2.ContentPart(text=part) for part in parts]


def proto(**fields: Any) -> chat_pb2.CreateChatCompletionRequest:
    request = chat_pb2.CreateChatCompletionRequest(
        model="demo", messages=[message_pb2.Message(role=ROLES["user"], content=text("Hi"))]
    )
    if "messages" in fields:
        request.ClearField("messages")
    request.MergeFrom(chat_pb2.CreateChatCompletionRequest(**fields))
    return request


def openai(**fields: Any) -> dict[str, Any]:
    return {"model": "demo", "messages": [{"role": "user", "content": "Hi"}]} | fields


def refused_by_proto(**fields: Any) -> tuple[Violation, ...]:
    with pytest.raises(InvalidRequestError) as caught:
        read_chat_request(chat_request_fields(proto(**fields)))
    return caught.value.violations


def message(**fields: Any) -> dict[str, Any]:
    return {"messages": [message_pb2.Message(**fields)]}


def function(**fields: Any) -> tool_pb2.Tool:
    return tool_pb2.Tool(function=tool_pb2.FunctionDefinition(**fields))


def choice(mode: str) -> tool_pb2.ToolChoice:
    return tool_pb2.ToolChoice(mode=tool_pb2.ToolChoiceMode.Value(f"TOOL_CHOICE_MODE_{mode}"))


TOOL = function(name="f", description="Does", parameters=SCHEMA_TEXT, strict=True)
OPENAI_TOOL = {
    "type": "function",
    "function": {"name": "f", "description": "Does", "parameters": SCHEMA, "strict": True},
}

# As proto, as OpenAI's JSON.
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "model": ({"model": "other"}, {"model": "other"}),
    "max_completion_tokens": ({"max_completion_tokens": 7}, {"max_completion_tokens": 7}),
    "max_tokens": ({"max_tokens": 2**32 - 1}, {"max_tokens": 2**32 - 1}),
    "stop": ({"stop": ["a", "b"]}, {"stop": ["a", "b"]}),
    "temperature zero": ({"temperature": 0}, {"temperature": 0}),
    "temperature": ({"temperature": 0.7}, {"temperature": 0.7}),
    "top_p": ({"top_p": 0.5}, {"top_p": 0.5}),
    "top_k": ({"top_k": -1}, {"top_k": -1}),
    "top_k zero": ({"top_k": 0}, {"top_k": 0}),
    "seed": ({"seed": 0}, {"seed": 0}),
    "tools": ({"tools": [TOOL]}, {"tools": [OPENAI_TOOL]}),
    "bare tool": (
        {"tools": [function(name="f")]},
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
    ),
    "tool_choice none": (
        {"tools": [TOOL], "tool_choice": choice("NONE")},
        {"tools": [OPENAI_TOOL], "tool_choice": "none"},
    ),
    "tool_choice auto": (
        {"tools": [TOOL], "tool_choice": choice("AUTO")},
        {"tools": [OPENAI_TOOL], "tool_choice": "auto"},
    ),
    "reasoning_effort": ({"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
    "chat_template_kwargs": (
        {"chat_template_kwargs": SCHEMA_TEXT},
        {"chat_template_kwargs": SCHEMA},
    ),
    "response_format": (
        {"response_format": format_pb2.ResponseFormat(text=format_pb2.TextFormat())},
        {"response_format": {"type": "text"}},
    ),
    "bookkeeping": (
        {"user": "me", "metadata": {"a": "b"}, "store": False, "verbosity": "low"},
        {"user": "me", "metadata": {"a": "b"}, "store": False, "verbosity": "low"},
    ),
    "neutral": (
        {"n": 1, "logprobs": False, "presence_penalty": 0, "modalities": ["text"]},
        {"n": 1, "logprobs": False, "presence_penalty": 0, "modalities": ["text"]},
    ),
    "several parts": (
        message(role=ROLES["user"], content=text("a", "", "b"), name="Ann"),
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": part} for part in ("a", "", "b")],
                    "name": "Ann",
                }
            ]
        },
    ),
    "empty text": (
        message(role=ROLES["user"], content=text("")),
        {"messages": [{"role": "user", "content": ""}]},
    ),
    "refusal part": (
        message(role=ROLES["assistant"], content=[message_pb2.ContentPart(refusal="No")]),
        {"messages": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}]},
    ),
    "refusal": (
        message(role=ROLES["assistant"], refusal="No"),
        {"messages": [{"role": "assistant", "content": None, "refusal": "No"}]},
    ),
    "assistant's turn": (
        message(
            role=ROLES["assistant"],
            reasoning_content="Hm",
            tool_calls=[
                message_pb2.ToolCall(
                    id="c1",
                    function=message_pb2.FunctionCall(name="f", arguments=CALL_ARGUMENTS),
                )
            ],
        ),
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "Hm",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "f", "arguments": CALL_ARGUMENTS},
                        }
                    ],
                }
            ]
        },
    ),
    "tool's turn": (
        message(role=message_pb2.ROLE_TOOL, content=text("42"), tool_call_id="c1"),
        {"messages": [{"role": "tool", "content": "42", "tool_call_id": "c1"}]},
    ),
} | {
    f"{name} role": (
        message(role=number, content=text("x")),
        {"messages": [{"role": name, "content": "x"}]},
    )
    for name, number in ROLES.items()
}


@pytest.mark.parametrize("name", PAIRS)
def test_both_doors_read_the_same_request(name: str) -> None:
    typed, plain = PAIRS[name]
    read = read_chat_request(chat_request_fields(proto(**typed)))
    assert read == read_chat_request(openai(**plain))
    assert read.ignored == ()


def test_the_table_covers_every_served_field() -> None:
    covered = {field for typed, _ in PAIRS.values() for field in typed}
    # A stream is another RPC, and its options mean something there only.
    assert covered >= SERVED - {"stream", "stream_options"}


def test_every_field_of_the_contract_is_known_to_the_rules() -> None:
    fields = set(chat_pb2.CreateChatCompletionRequest.DESCRIPTOR.fields_by_name)
    assert fields <= SERVED | ACCEPTED | UNSUPPORTED.keys()


def test_a_streams_options_are_read() -> None:
    options = chat_pb2.StreamOptions(include_usage=True, include_obfuscation=False)
    fields = chat_request_fields(proto(stream_options=options))
    assert read_chat_request({**fields, "stream": True}).include_usage


@pytest.mark.parametrize("value", [SCHEMA, {"b": {"z": 1, "a": [{"y": 1, "x": 2}]}, "a": None}])
def test_json_in_strings_keeps_the_order_of_its_keys(value: Any) -> None:
    fields = proto(
        tools=[function(name="f", parameters=json.dumps(value))],
        chat_template_kwargs=json.dumps(value),
    )
    request = read_chat_request(chat_request_fields(fields))
    assert json.dumps(request.tools[0].parameters) == json.dumps(value)
    assert json.dumps(request.template_arguments) == json.dumps(value)


@pytest.mark.parametrize("bad", ["", "{", "{'a': 1}", "{} x", "NaN", "[" * 100_000])
@pytest.mark.parametrize(
    ("path", "build"),
    [
        ("chat_template_kwargs", lambda bad: {"chat_template_kwargs": bad}),
        (
            "tools[1].function.parameters",
            lambda bad: {"tools": [TOOL, function(name="g", parameters=bad)]},
        ),
    ],
)
def test_bad_json_in_a_string_names_the_field(path: str, build: Any, bad: str) -> None:
    (violation,) = refused_by_proto(**build(bad))
    assert (violation.field, violation.code) == (path, "invalid_json")
    assert violation.message.startswith(f"{path} must hold JSON as text: ")
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
        (message(role=ROLES["user"]), "messages[0].content"),
        (
            message(role=ROLES["user"], content=[message_pb2.ContentPart()]),
            "messages[0].content[0].type",
        ),
        (
            message(
                role=ROLES["user"],
                content=[message_pb2.ContentPart(image_url=message_pb2.ImageUrl(url="x"))],
            ),
            "messages[0].content[0].type",
        ),
        (
            message(role=ROLES["assistant"], tool_calls=[message_pb2.ToolCall(id="c")]),
            "messages[0].tool_calls[0].function",
        ),
        (message(role=message_pb2.ROLE_TOOL, content=text("x")), "messages[0].tool_call_id"),
        ({"tools": [tool_pb2.Tool()]}, "tools[0].type"),
        ({"tools": [tool_pb2.Tool(custom=tool_pb2.CustomTool(name="c"))]}, "tools[0].type"),
        ({"tools": [function(description="x")]}, "tools[0].function.name"),
        ({"tool_choice": tool_pb2.ToolChoice()}, "tool_choice"),
        ({"tool_choice": choice("UNSPECIFIED")}, "tool_choice"),
        ({"tool_choice": choice("REQUIRED")}, "tool_choice"),
        ({"tool_choice": tool_pb2.ToolChoice(function_name="f")}, "tool_choice"),
        (
            {"tool_choice": tool_pb2.ToolChoice(allowed_tools=tool_pb2.AllowedTools())},
            "tool_choice",
        ),
        ({"response_format": format_pb2.ResponseFormat()}, "response_format"),
        (
            {
                "response_format": format_pb2.ResponseFormat(
                    json_object=format_pb2.JsonObjectFormat()
                )
            },
            "response_format",
        ),
        (
            {
                "response_format": format_pb2.ResponseFormat(
                    json_schema=format_pb2.JsonSchemaFormat(name="x", schema=SCHEMA_TEXT)
                )
            },
            "response_format",
        ),
        ({"structured_outputs": format_pb2.StructuredOutputs()}, "structured_outputs"),
        ({"logit_bias": {1: 2.0}}, "logit_bias"),
        ({"n": 0}, "n"),
        ({"documents": ["{}"]}, "documents"),
        ({"temperature": float("nan")}, "temperature"),
        ({"seed": 2**64 - 1}, "seed"),
        ({"stream_options": chat_pb2.StreamOptions()}, "stream_options"),
    ],
)
def test_what_is_unset_or_not_served_is_refused_by_name(fields: dict[str, Any], path: str) -> None:
    assert [violation.field for violation in refused_by_proto(**fields)] == [path]


def test_an_empty_request_misses_what_is_required() -> None:
    empty = chat_request_fields(chat_pb2.CreateChatCompletionRequest())
    assert empty == {}
    with pytest.raises(InvalidRequestError) as caught:
        read_chat_request(empty)
    assert [violation.field for violation in caught.value.violations] == ["model", "messages"]
