"""What is wrong with a request of the Responses API, and where."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.limits import Limits
from ovchat_server.domain.responses.reading import read_responses_request
from tests.unit.junk import junk, junk_fields

ITEM = {"type": "message", "role": "user", "content": "Hi"}
FUNCTION = {"type": "function", "name": "f"}
PATCH = {"type": "custom", "name": "patch"}
MISSING, TYPE, VALUE = "missing_required_parameter", "invalid_type", "invalid_value"
UNSUPPORTED = "unsupported_value"
SERVED_ITEMS = (
    "'message', 'function_call', 'function_call_output', 'custom_tool_call', "
    "'custom_tool_call_output', 'reasoning'"
)
WORDS = "'none', 'auto', 'required'"


def content(**part: Any) -> dict[str, Any]:
    return {"input": [ITEM, {"role": "user", "content": [part]}]}


def call(**fields: Any) -> dict[str, Any]:
    return {"input": [{"type": "function_call", "call_id": "c", "name": "f", **fields}]}


def tools(*others: Any, **fields: Any) -> dict[str, Any]:
    return {"tools": [{**FUNCTION, **fields}, *others]}


def allowed(*names: Any, mode: str = "auto") -> dict[str, Any]:
    listed = [{"type": "function", "name": name} for name in names]
    return tools(PATCH) | {"tool_choice": {"type": "allowed_tools", "mode": mode, "tools": listed}}


FAULTS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"input": None}, "input", MISSING, "is required"),
    ({"input": 1}, "input", TYPE, "must be a string or an array, not a number"),
    ({"input": []}, "input", VALUE, "must contain at least one item"),
    ({"input": [1]}, "input[0]", TYPE, "must be an object, not a number"),
    ({"input": [ITEM, {"type": 1}]}, "input[1].type", TYPE, "must be a string, not a number"),
    ({"input": [{"content": "a"}]}, "input[0].type", MISSING, "is required"),
    ({"input": [{"id": "a", "content": "b"}]}, "input[0].type", MISSING, "is required"),
    (
        {"input": [{"type": "unheard_of"}]},
        "input[0].type",
        VALUE,
        f"must be one of {SERVED_ITEMS}, got 'unheard_of'",
    ),
    (
        {"input": [{"role": "tool", "content": "a"}]},
        "input[0].role",
        VALUE,
        "must be one of 'user', 'assistant', 'system', 'developer', got 'tool'",
    ),
    (
        {"input": [{"role": 1, "content": ""}]},
        "input[0].role",
        TYPE,
        "must be a string, not a number",
    ),
    ({"input": [{"role": "user"}]}, "input[0].content", MISSING, "is required"),
    (
        {"input": [{"role": "user", "content": {}}]},
        "input[0].content",
        TYPE,
        "must be a string or an array, not an object",
    ),
    (
        content(type="input_text", text=1),
        "input[1].content[0].text",
        TYPE,
        "must be a string, not a number",
    ),
    (
        content(type="input_audio"),
        "input[1].content[0].type",
        UNSUPPORTED,
        "is 'input_audio': models here take no such parts",
    ),
    (content(type="input_image"), "input[1].content[0].image_url", MISSING, "is required"),
    (
        content(type="input_image", file_id="x"),
        "input[1].content[0].file_id",
        UNSUPPORTED,
        "is not supported: no files are kept here, send the image in image_url",
    ),
    (call(), "input[0].arguments", MISSING, "is required"),
    (
        call(arguments="[" * 129 + "]" * 129),
        "input[0].arguments",
        VALUE,
        "is nested more than 128 levels deep",
    ),
    ({"tools": {}}, "tools", TYPE, "must be an array, not an object"),
    ({"tools": [{"name": "f"}]}, "tools[0].type", MISSING, "is required"),
    (tools(name=None), "tools[0].name", MISSING, "is required"),
    (
        tools(name="a b"),
        "tools[0].name",
        VALUE,
        "must be 1 to 64 letters, digits, underscores, dashes or dots, got 'a b'",
    ),
    (tools(FUNCTION), "tools[1].name", VALUE, "must be unique, got 'f' twice"),
    (tools(parameters=[]), "tools[0].parameters", TYPE, "must be an object, not an array"),
    (tools(strict="yes"), "tools[0].strict", TYPE, "must be true or false, not a string"),
    (
        tools({"type": "custom", "name": "g", "format": {"type": "json"}}),
        "tools[1].format.type",
        VALUE,
        "must be one of 'text', 'grammar', got 'json'",
    ),
    (
        tools(
            {
                "type": "custom",
                "name": "g",
                "format": {"type": "grammar", "syntax": "regex", "definition": ""},
            }
        ),
        "tools[1].format.definition",
        VALUE,
        "must not be empty",
    ),
    (
        tools({"type": "namespace", "name": "n", "tools": [FUNCTION, {"type": "namespace"}]}),
        "tools[1].tools[1].type",
        UNSUPPORTED,
        "is 'namespace': no namespace may stand in another",
    ),
    ({"tool_choice": "required"}, "tool_choice", VALUE, "needs tools"),
    ({"tool_choice": "any"}, "tool_choice", VALUE, f"must be one of {WORDS}, got 'any'"),
    ({"tool_choice": 1}, "tool_choice", TYPE, "must be a string or an object, not a number"),
    (
        {"tool_choice": {"type": "web_search_preview"}},
        "tool_choice.type",
        UNSUPPORTED,
        "is 'web_search_preview': hosted tools are never called here",
    ),
    (
        tools(PATCH) | {"tool_choice": {"type": "custom", "name": "f"}},
        "tool_choice.name",
        VALUE,
        "is 'f', but the custom tools are: patch",
    ),
    (
        allowed("f", "patch"),
        "tool_choice.tools[1].name",
        VALUE,
        "is 'patch', but the functions are: f",
    ),
    (
        tools()
        | {
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "web_search"}],
            }
        },
        "tool_choice.tools",
        VALUE,
        "must have a function or a custom tool: hosted tools are never called here",
    ),
    (allowed(), "tool_choice.tools", VALUE, "must contain at least one tool"),
    (allowed("f", 1), "tool_choice.tools[1].name", TYPE, "must be a string, not a number"),
    (allowed("f", "g"), "tool_choice.tools[1].name", VALUE, "is 'g', but the functions are: f"),
    (
        {"text": {"format": {"type": "json_schema"}}},
        "text.format.schema",
        MISSING,
        "is required",
    ),
    (
        {"text": {"format": {"type": "json_schema", "schema": {}, "strict": "yes"}}},
        "text.format.strict",
        TYPE,
        "must be true or false, not a string",
    ),
    (
        {"text": {"format": {"type": "json_object"}}, "ignore_eos": True},
        "ignore_eos",
        "unsupported_parameter",
        "is not supported with text.format",
    ),
    (
        {"reasoning": {"effort": "much"}},
        "reasoning.effort",
        VALUE,
        "must be one of 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', got 'much'",
    ),
    ({"metadata": {"a": 1}}, "metadata.a", TYPE, "must be a string, not a number"),
    (
        {"metadata": {str(key): "" for key in range(17)}},
        "metadata",
        VALUE,
        "must contain at most 16 entries, got 17",
    ),
    (
        {"truncation": "left"},
        "truncation",
        VALUE,
        "must be one of 'auto', 'disabled', got 'left'",
    ),
    (
        {"instructions": [{**ITEM, "role": "system", "content": []}]},
        "instructions[0]",
        VALUE,
        "must be a message of text",
    ),
    (
        {"instructions": [{**ITEM, "role": "system"}, {**ITEM, "role": "assistant"}]},
        "instructions[1].role",
        VALUE,
        "must be 'system' or 'developer'",
    ),
    (
        {"max_output_tokens": 0},
        "max_output_tokens",
        VALUE,
        "must be between 1 and 4294967295, got 0",
    ),
    (
        {"max_output_tokens": 1, "min_tokens": 2},
        "min_tokens",
        VALUE,
        "must not be more than max_output_tokens, which is 1",
    ),
    ({"background": True}, "background", "unsupported_parameter", "is only supported as false"),
    (
        {"conversation": "c"},
        "conversation",
        "unsupported_parameter",
        "is not supported; leave it out",
    ),
]


def faults(fields: dict[str, Any], **options: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidRequestError) as caught:
        read_responses_request({"input": "Hi", **fields}, **options)
    return [(item.field, item.code, item.message) for item in caught.value.violations]


@pytest.mark.parametrize(("fields", "path", "code", "complaint"), FAULTS)
def test_a_fault_is_told_once_where_it_is(
    fields: dict[str, Any], path: str, code: str, complaint: str
) -> None:
    assert faults(fields) == [(path, code, f"{path} {complaint}.")]


def test_every_fault_is_told_at_once() -> None:
    fields = {**content(type="input_text"), **tools(name=1), "temperature": 9, "background": True}
    assert {path for path, _, _ in faults(fields)} == {
        "input[1].content[0].text",
        "tools[0].name",
        "temperature",
        "background",
    }


def test_an_unknown_key_is_named() -> None:
    fields = {
        "input": [{**ITEM, "content": [{"type": "input_text", "text": "a", "x": 1}], "y": None}],
        "tools": [{**FUNCTION, "x": 1}],
        "text": {"format": {"type": "text", "x": 1}, "x": 1},
        "reasoning": {"x": 1},
        "echo": True,
        "prompt_logprobs": 1,
    }
    paths = {
        "echo",
        "prompt_logprobs",
        "input[0].y",
        "input[0].content[0].x",
        "tools[0].x",
        "text.x",
        "text.format.x",
        "reasoning.x",
    }
    assert set(read_responses_request(fields).ignored) == paths  # type: ignore[arg-type]
    told = faults(fields, strict=True)
    assert {(path, code) for path, code, _ in told} == {
        (path, "unknown_parameter") for path in paths
    }


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"input": [ITEM] * 3}, "input"),
        ({"input": [{**ITEM, "content": [1, 2, 3]}]}, "input[0].content"),
        ({"tools": [FUNCTION] * 3}, "tools"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [FUNCTION] * 2}]}, "tools"),
    ],
)
def test_a_request_is_bounded(fields: dict[str, Any], path: str) -> None:
    limits = Limits(max_messages=2, max_parts=2, max_tools=2)
    complaint = f"{path} must contain at most 2 items, got 3."
    assert faults(fields, limits=limits) == [(path, "invalid_value", complaint)]


def test_of_wrong_names_the_first_is_told() -> None:
    [(path, _, _)] = faults({"include": ["x"] * 1_000_000})
    assert path == "include[0]"


def test_a_conversation_is_bounded_in_all() -> None:
    [(path, _, _)] = faults(content(type="x"), limits=Limits(max_total_parts=0))
    assert path == "input"


KEYS = """
    type role content text name call_id arguments input output image_url detail tools format
    mode namespace syntax definition parameters strict summary schema effort file_id __class__
"""
TYPES = """
    message reasoning function_call function_call_output custom_tool_call input_text input_image
    output_text function custom namespace grammar lark regex allowed_tools json_schema user
    assistant required auto web_search
"""
NAMES = (
    "input",
    "tools",
    "tool_choice",
    "text",
    "reasoning",
    "instructions",
    "metadata",
    "include",
)


@given(fields=junk_fields(junk(KEYS, TYPES), *NAMES))
def test_junk_is_refused_or_read(fields: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidRequestError):
        read_responses_request(fields)
