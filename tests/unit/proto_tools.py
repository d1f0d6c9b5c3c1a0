"""Chat requests as proto and as OpenAI's JSON: pairs that mean the same."""

from __future__ import annotations

import json
from typing import Any

from ovchat.v1 import chat_pb2, format_pb2, message_pb2, tool_pb2
from tests.structured_output import TAG

# Keys in an order that neither sorting nor a protobuf map would give.
SCHEMA = {
    "type": "object",
    "properties": {"zeta": {"type": "string"}, "alpha": {"type": "number"}, "mid": {}},
    "required": ["zeta"],
}
SCHEMA_TEXT = json.dumps(SCHEMA)
# Older names, which the contract has in structured_outputs only.
OLDER = {
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structural_tag",
    "functions",
    "function_call",
}
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
BIAS: tuple[dict[str, Any], dict[str, Any]] = (
    {"logit_bias": {0: -100.0, 2**32 - 1: 0.5}},
    {"logit_bias": {"0": -100, str(2**32 - 1): 0.5}},
)
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "response_format text": (
        {"response_format": format_pb2.ResponseFormat(text=format_pb2.TextFormat())},
        {"response_format": {"type": "text"}},
    ),
    "response_format json_object": (
        {"response_format": format_pb2.ResponseFormat(json_object=format_pb2.JsonObjectFormat())},
        {"response_format": {"type": "json_object"}},
    ),
    "response_format json_schema": (
        {
            "response_format": format_pb2.ResponseFormat(
                json_schema=format_pb2.JsonSchemaFormat(name="x", schema=SCHEMA_TEXT, strict=True)
            )
        },
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": SCHEMA, "strict": True},
            }
        },
    ),
    "response_format structural_tag": (
        {"response_format": format_pb2.ResponseFormat(structural_tag=json.dumps(TAG))},
        {"response_format": TAG},
    ),
} | {
    f"structured_outputs {name}": (
        {"structured_outputs": format_pb2.StructuredOutputs(**{name: typed})},
        {"structured_outputs": {name: plain}},
    )
    for name, typed, plain in [
        ("json", SCHEMA_TEXT, SCHEMA),
        ("regex", "a+", "a+"),
        ("choice", format_pb2.StringList(values=["a", "b"]), ["a", "b"]),
        ("grammar", 'root ::= "a"', 'root ::= "a"'),
        ("json_object", True, True),
        ("structural_tag", json.dumps(TAG), TAG),
    ]
}
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = (
    {
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
        "parallel_tool_calls False": (
            {"tools": [TOOL], "parallel_tool_calls": False},
            {"tools": [OPENAI_TOOL], "parallel_tool_calls": False},
        ),
        "agent_format qwen3": ({"agent_format": "qwen3"}, {"agent_format": "qwen3"}),
        "include_reasoning False": ({"include_reasoning": False}, {"include_reasoning": False}),
        "tool_choice required": (
            {"tools": [TOOL], "tool_choice": choice("REQUIRED")},
            {"tools": [OPENAI_TOOL], "tool_choice": "required"},
        ),
        "tool_choice auto": (
            {"tools": [TOOL], "tool_choice": choice("AUTO")},
            {"tools": [OPENAI_TOOL], "tool_choice": "auto"},
        ),
        "reasoning_effort": ({"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        "thinking_token_budget": ({"thinking_token_budget": 0}, {"thinking_token_budget": 0}),
        "chat_template_kwargs": (
            {"chat_template_kwargs": SCHEMA_TEXT},
            {"chat_template_kwargs": SCHEMA},
        ),
        "bookkeeping": (
            {"user": "me", "metadata": {"a": "b"}, "store": False, "verbosity": "low"},
            {"user": "me", "metadata": {"a": "b"}, "store": False, "verbosity": "low"},
        ),
        "neutral": (
            {"n": 1, "logprobs": False, "modalities": ["text"]},
            {"n": 1, "logprobs": False, "modalities": ["text"]},
        ),
        "documents": (
            {"documents": [SCHEMA_TEXT, "{}"]},
            {"documents": [SCHEMA, {}]},
        ),
        "beam search": (
            {"n": 2, "best_of": 4, "use_beam_search": True, "length_penalty": -0.5},
            {"n": 2, "best_of": 4, "use_beam_search": True, "length_penalty": -0.5},
        ),
        "a priority": ({"priority": -5}, {"priority": -5}),
        "a salt": ({"cache_salt": "s"}, {"cache_salt": "s"}),
        "a bias": BIAS,
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
        "an image": (
            message(
                role=ROLES["user"],
                content=[
                    message_pb2.ContentPart(
                        image_url=message_pb2.ImageUrl(url="data:,", detail="low")
                    )
                ],
            ),
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}}
                        ],
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
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}
                ]
            },
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
    }
    | {
        # Fields of the same name and value on both doors.
        f"{name} {value}": ({name: value}, {name: value})
        for name, value in [
            ("min_tokens", 0),
            ("ignore_eos", True),
            ("stop_token_ids", [0, 2**32 - 1]),
            ("include_stop_str_in_output", True),
            ("skip_special_tokens", False),
            ("truncate_prompt_tokens", -1),
            ("truncation_side", "right"),
            ("min_p", 0.25),
            ("repetition_penalty", 1.5),
            ("presence_penalty", 0),
            ("presence_penalty", -2),
            ("frequency_penalty", 0.5),
            ("allowed_token_ids", [5, 2**32 - 1]),
            ("bad_words", ["a", " b"]),
            ("seed", -(2**63)),
            ("seed", 2**63 - 1),
            ("n", 3),
            ("prompt_logprobs", 0),
            ("prompt_logprobs", 20),
            ("num_assistant_tokens", 0),
            ("max_ngram_size", 32),
            ("assistant_confidence_threshold", 0.5),
            ("echo", True),
            ("add_generation_prompt", False),
            ("continue_final_message", True),
        ]
    }
    | {
        "prediction": (
            {"prediction": "a\nb"},
            {"prediction": {"type": "content", "content": "a\nb"}},
        ),
        "log probabilities": (
            {"logprobs": True, "top_logprobs": 20},
            {"logprobs": True, "top_logprobs": 20},
        ),
    }
    | FORMS
    | {
        f"{name} role": (
            message(role=number, content=text("x")),
            {"messages": [{"role": name, "content": "x"}]},
        )
        for name, number in ROLES.items()
    }
)
