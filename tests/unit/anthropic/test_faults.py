"""What is wrong with a request of the Messages API, and where."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from ovchat_server.domain.anthropic.reading import read_count_request, read_messages_request
from ovchat_server.domain.anthropic.spelling import spelled
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.limits import Limits

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject
from tests.unit.junk import junk, junk_fields

HI = {"role": "user", "content": "Hi"}
SCHEMA: JsonObject = {"type": "object"}
FUNCTION = {"name": "f", "input_schema": SCHEMA}
USE = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t"}
FORM = {"type": "json_schema", "schema": SCHEMA}
MISSING, TYPE, VALUE = "missing_required_parameter", "invalid_type", "invalid_value"
UNSUPPORTED, PARAMETER = "unsupported_value", "unsupported_parameter"
IMAGE_TYPES = "'image/png', 'image/jpeg', 'image/webp', 'image/gif', 'image/bmp'"
SERVED_BLOCKS = (
    "'text', 'image', 'document', 'tool_use', 'tool_result', 'thinking', 'redacted_thinking'"
)


def content(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [HI, {"role": role, "content": [*blocks]}]}


def image(**source: Any) -> dict[str, Any]:
    return content({"type": "image", "source": source})


def tools(*others: Any, **fields: Any) -> dict[str, Any]:
    return {"tools": [{**FUNCTION, **fields}, *others]}


FAULTS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"max_tokens": None}, "max_tokens", MISSING, "is required"),
    ({"max_tokens": 0}, "max_tokens", VALUE, "must be between 1 and 4294967295, got 0"),
    ({"messages": None}, "messages", MISSING, "is required"),
    ({"messages": "Hi"}, "messages", TYPE, "must be an array, not a string"),
    ({"messages": []}, "messages", VALUE, "must contain at least one message"),
    ({"messages": [1]}, "messages[0]", TYPE, "must be an object, not a number"),
    ({"messages": [{"content": "a"}]}, "messages[0].role", MISSING, "is required"),
    (
        {"messages": [{"role": "tool", "content": "a"}]},
        "messages[0].role",
        VALUE,
        "must be one of 'user', 'assistant', 'system', got 'tool'",
    ),
    ({"messages": [{"role": "user"}]}, "messages[0].content", MISSING, "is required"),
    (
        {"messages": [{"role": "user", "content": 1}]},
        "messages[0].content",
        TYPE,
        "must be a string or an array, not a number",
    ),
    *(
        (
            {"system": "a", "messages": [{"role": role, "content": ""}]},
            "messages",
            VALUE,
            "must say something, besides what the system says, to be answered",
        )
        for role in ("user", "system")
    ),
    (
        content({"type": "unheard_of"}),
        "messages[1].content[0].type",
        VALUE,
        f"must be one of {SERVED_BLOCKS}, got 'unheard_of'",
    ),
    *(
        (
            content({"type": name}),
            "messages[1].content[0].type",
            UNSUPPORTED,
            f"is '{name}': models here take no such parts",
        )
        for name in ("search_result", "container_upload", "compaction")
    ),
    (
        content({**RESULT, "content": [{"type": "search_result"}]}),
        "messages[1].content[0].content[0].type",
        UNSUPPORTED,
        "is 'search_result': models here take no such parts",
    ),
    *(
        (
            content(block, role=role),
            "messages[1].content[0].type",
            VALUE,
            f"is '{block['type']}', which cannot stand in a message of the {role}",
        )
        for block, role in (
            (USE, "user"),
            ({"type": "thinking", "thinking": "a"}, "user"),
            (RESULT, "assistant"),
        )
    ),
    (content({"type": "text"}), "messages[1].content[0].text", MISSING, "is required"),
    (
        content(RESULT | {"tool_use_id": None}),
        "messages[1].content[0].tool_use_id",
        MISSING,
        "is required",
    ),
    (
        content(RESULT | {"is_error": 1}),
        "messages[1].content[0].is_error",
        TYPE,
        "must be true or false, not a number",
    ),
    (
        content(USE | {"input": "{}"}, role="assistant"),
        "messages[1].content[0].input",
        TYPE,
        "must be an object, not a string",
    ),
    (
        image(type="file", file_id="x"),
        "messages[1].content[0].source.type",
        UNSUPPORTED,
        "is 'file': no files are kept here, send the image itself",
    ),
    (
        image(type="base64", media_type="image/svg+xml", data=""),
        "messages[1].content[0].source.media_type",
        VALUE,
        f"must be one of {IMAGE_TYPES}, got 'image/svg+xml'",
    ),
    (image(type="url"), "messages[1].content[0].source.url", MISSING, "is required"),
    (
        content({"type": "document", "source": {"type": "base64"}}),
        "messages[1].content[0].source.type",
        UNSUPPORTED,
        "is 'base64': of documents models here take only texts",
    ),
    ({"system": 1}, "system", TYPE, "must be a string or an array, not a number"),
    (
        {"system": [{"type": "image"}]},
        "system[0].type",
        VALUE,
        "must be one of 'text', got 'image'",
    ),
    ({"tools": {}}, "tools", TYPE, "must be an array, not an object"),
    (tools(type=1), "tools[0].type", TYPE, "must be a string, not a number"),
    (
        tools(type="function"),
        "tools[0].type",
        "unsupported_value",
        "must be 'custom', with name and input_schema beside it, got 'function'",
    ),
    (tools(name=None), "tools[0].name", MISSING, "is required"),
    (tools(input_schema=None), "tools[0].input_schema", MISSING, "is required"),
    (
        tools(name="a b"),
        "tools[0].name",
        VALUE,
        "must be 1 to 128 letters, digits, underscores, dashes or dots, got 'a b'",
    ),
    (tools(FUNCTION), "tools[1].name", VALUE, "must be unique, got 'f' twice"),
    ({"tool_choice": {"type": "any"}}, "tool_choice", VALUE, "needs tools"),
    ({"tool_choice": "auto"}, "tool_choice", TYPE, "must be an object, not a string"),
    ({"tool_choice": {}}, "tool_choice.type", MISSING, "is required"),
    (
        {"tool_choice": {"type": "required"}},
        "tool_choice.type",
        VALUE,
        "must be one of 'auto', 'any', 'none', 'tool', got 'required'",
    ),
    (tools() | {"tool_choice": {"type": "tool"}}, "tool_choice.name", MISSING, "is required"),
    (
        tools() | {"tool_choice": {"type": "tool", "name": "g"}},
        "tool_choice.name",
        VALUE,
        "is 'g', but the tools are: f",
    ),
    (
        tools() | {"tool_choice": {"type": "any"}, "ignore_eos": True},
        "ignore_eos",
        PARAMETER,
        "is not supported with tool_choice",
    ),
    ({"thinking": {}}, "thinking.type", MISSING, "is required"),
    (
        {"thinking": {"type": "between_tools"}},
        "thinking.type",
        VALUE,
        "must be one of 'enabled', 'adaptive', 'disabled', got 'between_tools'",
    ),
    ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens", MISSING, "is required"),
    (
        {"thinking": {"type": "enabled", "budget_tokens": 0}},
        "thinking.budget_tokens",
        VALUE,
        "must be between 1 and 4294967295, got 0",
    ),
    (
        {"thinking": {"type": "adaptive", "display": "all"}},
        "thinking.display",
        VALUE,
        "must be one of 'summarized', 'omitted', 'updates', got 'all'",
    ),
    (
        {"output_config": {"effort": "none"}},
        "output_config.effort",
        VALUE,
        "must be one of 'low', 'medium', 'high', 'xhigh', 'max', got 'none'",
    ),
    (
        {"output_config": {"format": {"type": "json_schema"}}},
        "output_config.format.schema",
        MISSING,
        "is required",
    ),
    (
        {"output_config": {"format": {**FORM, "type": "text"}}},
        "output_config.format.type",
        VALUE,
        "must be one of 'json_schema', got 'text'",
    ),
    (
        {"output_config": {"format": FORM}, "output_format": FORM},
        "output_format.schema",
        VALUE,
        "cannot be combined with output_config.format.schema",
    ),
    (
        {"output_format": FORM, "structured_outputs": {"regex": "a"}},
        "structured_outputs.regex",
        VALUE,
        "cannot be combined with output_format.schema",
    ),
    (
        {"output_config": {"format": FORM}, "min_tokens": 2},
        "min_tokens",
        PARAMETER,
        "is not supported with output_config.format.schema",
    ),
    ({"stop_sequences": [""]}, "stop_sequences[0]", VALUE, "must not be empty"),
    (
        {"stop_sequences": 1},
        "stop_sequences",
        TYPE,
        "must be a string or an array of strings",
    ),
    (
        {"max_tokens": 1, "min_tokens": 2},
        "min_tokens",
        VALUE,
        "must not be more than max_tokens, which is 1",
    ),
    ({"temperature": 3}, "temperature", VALUE, "must be at least 0 and at most 2, got 3"),
    ({"mcp_servers": [{}]}, "mcp_servers", PARAMETER, "is only supported as []"),
    ({"thread": {"type": "create"}}, "thread", PARAMETER, "is not supported; leave it out"),
]


def faults(fields: dict[str, Any], **options: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidRequestError) as caught:
        read_messages_request({"max_tokens": 9, "messages": [HI], **fields}, **options)
    # As they are told to the caller.
    caught.value.respell(spelled)
    return [(item.field, item.code, item.message) for item in caught.value.violations]


@pytest.mark.parametrize(("fields", "path", "code", "complaint"), FAULTS)
def test_a_fault_is_told_once_where_it_is(
    fields: dict[str, Any], path: str, code: str, complaint: str
) -> None:
    assert faults(fields) == [(path, code, f"{path} {complaint}.")]


def test_every_fault_is_told_at_once() -> None:
    fields = {**content({"type": "text"}), **tools(name=1), "temperature": 9, "thinking": 1}
    assert {path for path, _, _ in faults(fields)} == {
        "messages[1].content[0].text",
        "tools[0].name",
        "temperature",
        "thinking",
    }


def test_an_unknown_key_is_named() -> None:
    fields = {
        "system": [{"type": "text", "text": "a", "x": 1}],
        "messages": [
            {"role": "user", "content": [{**RESULT, "content": [], "x": 1}], "y": None},
            {**HI, "content": [{"type": "text", "text": "a", "x": 1}]},
        ],
        "tools": [{**FUNCTION, "x": 1}],
        "tool_choice": {"type": "auto", "x": 1},
        "thinking": {"type": "disabled", "x": 1},
        "output_config": {"format": {**FORM, "x": 1}, "x": 1},
        "n": 2,
    }
    paths = {
        "system[0].x",
        "messages[0].y",
        "messages[0].content[0].x",
        "messages[1].content[0].x",
        "tools[0].x",
        "tool_choice.x",
        "thinking.x",
        "output_config.x",
        "output_config.format.x",
        "n",
    }
    asked: Any = {"max_tokens": 9, **fields}
    assert set(read_messages_request(asked).ignored) == paths
    told = {(path, code) for path, code, _ in faults(fields, strict=True)}
    assert told == {(path, "unknown_parameter") for path in paths}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"messages": [HI] * 3}, "messages"),
        (content(1, 2, 3), "messages[1].content"),
        (content({**RESULT, "content": [1, 2, 3]}), "messages[1].content[0].content"),
        ({"system": [1, 2, 3]}, "system"),
        ({"tools": [FUNCTION] * 3}, "tools"),
    ],
)
def test_a_request_is_bounded(fields: dict[str, Any], path: str) -> None:
    limits = Limits(max_messages=2, max_parts=2, max_tools=2)
    complaint = f"{path} must contain at most 2 items, got 3."
    assert faults(fields, limits=limits) == [(path, "invalid_value", complaint)]


def test_a_conversation_is_bounded_in_all() -> None:
    fields = content(RESULT, {**RESULT, "content": [{"type": "text", "text": "a"}]})
    assert read_messages_request(
        {"max_tokens": 9, **fields}, limits=Limits(max_total_parts=3)
    ).chat.messages
    [(path, _, _)] = faults(fields, limits=Limits(max_total_parts=2))
    assert path == "messages"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (("reasoning_effort",), "output_config.effort"),
        (("stop", 1), "stop_sequences[1]"),
        (("messages", 4, "tool_calls", 0, "function", "arguments"), "messages"),
        (("messages", 4, "content", 0, "source"), "messages[4].content[0].source"),
        (("max_tokens",), "max_tokens"),
    ],
)
def test_fields_of_a_chat_are_called_what_the_caller_calls_them(
    steps: tuple[str | int, ...], said: str
) -> None:
    assert str(spelled(FieldPath(steps))) == said


KEYS = """
    type role content text name id input source media_type data url title context tool_use_id
    is_error thinking signature tool_name input_schema strict schema effort format budget_tokens
    display clear_at disable_parallel_tool_use __class__
"""
TYPES = """
    text image document tool_use tool_result thinking redacted_thinking tool_reference
    server_tool_use base64 url custom auto any tool none enabled adaptive disabled json_schema
    user assistant system
"""
NAMES = (
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "stop_sequences",
)


@given(fields=junk_fields(junk(KEYS, TYPES), *NAMES))
def test_junk_is_refused_or_read(fields: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidRequestError):
        read_count_request(fields)
