"""What becomes of a request of the Messages API, besides its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_create_params as beta_create_params

from ovchat_server.domain.anthropic.parameters import MESSAGES
from ovchat_server.domain.anthropic.reading import read_count_request, read_messages_request
from ovchat_server.domain.chat import Tool, ToolChoice, ToolMode
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.structured_output import Constraint, ConstraintKind

if TYPE_CHECKING:
    from ovchat_server.domain.anthropic.request import MessagesRequest
    from ovchat_server.domain.json_value import JsonObject

HI = {"role": "user", "content": "Hi"}
SCHEMA: JsonObject = {"type": "object", "properties": {"z": {}, "a": {}}}
FUNCTION = {"name": "f", "input_schema": SCHEMA}
FORM = {"type": "json_schema", "schema": SCHEMA}
EPHEMERAL = {"type": "ephemeral", "ttl": "1h"}
HINTS = {
    "cache_control": EPHEMERAL,
    "defer_loading": True,
    "eager_input_streaming": True,
    "input_examples": [{"z": 1}],
    "allowed_callers": ["direct"],
}


def read(**fields: Any) -> MessagesRequest:
    return read_messages_request({"max_tokens": 99, "messages": [HI], **fields}, strict=True)


def test_a_request_is_read() -> None:
    request = read(
        model="demo",
        stream=True,
        stop_sequences=["a", "b"],
        temperature=0,
        top_p=0.5,
        top_k=5,
        seed=7,
        structured_outputs={"regex": "a"},
        chat_template_kwargs={"x": 1},
        metadata={"user_id": "me"},
        service_tier="auto",
        betas=["a"],
    )
    chat, generation = request.chat, request.chat.generation
    assert (chat.model, request.stream) == ("demo", StreamOptions(include_usage=True))
    assert (generation.ending.max_tokens, generation.ending.stop) == (99, ("a", "b"))
    sampling = generation.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed) == (0, 0.5, 5, 7)
    assert generation.constraint
    assert generation.constraint.kind is ConstraintKind.REGEX
    assert (request.ignored, chat.accepted) == ((), ("betas", "metadata", "service_tier"))
    assert chat.id_prefix == "msg_"


def test_counting_needs_no_limit() -> None:
    fields: JsonObject = {"model": "demo", "messages": [HI], "tools": [FUNCTION]}
    counted = read_count_request(fields, strict=True)
    asked = read_messages_request({**fields, "max_tokens": 1})
    assert counted.chat.generation.ending.max_tokens is None
    assert (counted.chat.messages, counted.chat.tools) == (asked.chat.messages, asked.chat.tools)


TOOLS: dict[str, tuple[list[Any], list[Tool], tuple[str, ...]]] = {
    "none": ([], [], ()),
    "functions": (
        [
            {**FUNCTION, "description": "F.", "strict": True, **HINTS},
            {**FUNCTION, "name": "g", "type": "custom"},
            {**FUNCTION, "name": "mcp__" + "x" * 123, "type": None},
        ],
        [
            Tool("f", "F.", SCHEMA, strict=True),
            Tool("g", None, SCHEMA),
            Tool("mcp__" + "x" * 123, None, SCHEMA),
        ],
        (),
    ),
    "hosted ones": (
        [
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
            FUNCTION,
            {"type": "unheard_of_20300101", "x": 1},
        ],
        [Tool("f", None, SCHEMA)],
        ("tools[0]", "tools[2]"),
    ),
}


@pytest.mark.parametrize(("tools", "functions", "ignored"), TOOLS.values(), ids=TOOLS)
def test_tools_are_functions(
    tools: list[Any], functions: list[Tool], ignored: tuple[str, ...]
) -> None:
    request = read(tools=tools)
    assert list(request.chat.tools) == functions
    assert request.ignored == ignored
    assert request.chat.tool_choice.mode is (ToolMode.AUTO if functions else ToolMode.NONE)


ONE = {"disable_parallel_tool_use": True}


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        (None, ToolChoice(ToolMode.AUTO)),
        ({"type": "auto", "disable_parallel_tool_use": False}, ToolChoice(ToolMode.AUTO)),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            ToolChoice(ToolMode.AUTO, parallel=False),
        ),
        ({"type": "any"}, ToolChoice(ToolMode.REQUIRED)),
        ({"type": "none"}, ToolChoice(ToolMode.NONE)),
        ({"type": "tool", "name": "f"}, ToolChoice(ToolMode.NAMED, allowed=("f",), parallel=False)),
    ],
)
def test_a_choice_is_of_functions(given: Any, choice: ToolChoice) -> None:
    assert read(tools=[FUNCTION], tool_choice=given).chat.tool_choice == choice


ON, OFF = ({"enable_thinking": on, "thinking": on} for on in (True, False))


@pytest.mark.parametrize(
    ("fields", "arguments", "budget", "shown"),
    [
        ({}, OFF, None, True),
        ({"thinking": {"type": "disabled"}}, OFF, None, True),
        ({"thinking": {"type": "adaptive"}}, ON, None, True),
        ({"thinking": {"type": "adaptive", "display": "summarized"}}, ON, None, True),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, ON, None, False),
        ({"thinking": {"type": "adaptive", "display": "updates"}}, ON, None, False),
        ({"thinking": {"type": "enabled", "budget_tokens": 200, "display": None}}, ON, 200, True),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1, "display": "summarized"}},
            ON,
            1,
            True,
        ),
        ({"output_config": {"effort": "max"}}, {**OFF, "reasoning_effort": "max"}, None, True),
        ({"chat_template_kwargs": {"thinking": True}}, {**OFF, "thinking": True}, None, True),
        ({"thinking": {"type": "adaptive"}, "chat_template_kwargs": OFF}, OFF, None, True),
    ],
)
def test_thinking_is_the_templates(
    fields: Any, arguments: JsonObject, budget: int | None, *, shown: bool
) -> None:
    request = read(**fields)
    assert request.chat.template_arguments == arguments
    assert request.chat.include_reasoning is arguments["thinking"]
    assert (request.chat.thinking_budget, request.shows_thinking) == (budget, shown)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"output_config": {"format": FORM, "effort": None}}, "output_config.format.schema"),
        ({"output_config": {"format": None}, "output_format": FORM}, "output_format.schema"),
    ],
)
def test_a_format_is_a_schema(fields: Any, path: str) -> None:
    constraint = read(**fields).chat.generation.constraint
    assert isinstance(constraint, Constraint)
    assert (constraint.kind, constraint.value) == (ConstraintKind.JSON_SCHEMA, SCHEMA)
    assert str(constraint.field) == path


def test_schemas_of_tools_know_their_fields() -> None:
    assert [str(tool.field) for tool in read(tools=[FUNCTION]).chat.tools] == [
        "tools[0].input_schema"
    ]


def test_all_of_anthropics_parameters_are_known() -> None:
    known = MESSAGES.served | MESSAGES.accepted | MESSAGES.refused.keys()
    for types in (
        message_create_params.MessageCreateParamsBase,
        message_count_tokens_params.MessageCountTokensParams,
        beta_create_params.MessageCreateParamsBase,
    ):
        assert known >= types.__annotations__.keys()


def test_what_claude_code_sends_is_served() -> None:
    tools = [
        {"name": f"Tool{number}", "description": "Does it.", "input_schema": SCHEMA, **HINTS}
        for number in range(24)
    ]
    billing = "x-anthropic-billing-header: cc_version=2.1.37.3a3; cc_entrypoint=cli; cch=0a1b2;"
    reminder = "<system-reminder>\nToday's date is 2026-11-28.\n</system-reminder>"
    call = {"type": "tool_use", "id": "toolu_1", "name": "Tool3", "input": {"z": "ls"}}
    outcome = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "<tool_use_error>No such file</tool_use_error>",
        "is_error": True,
        "cache_control": EPHEMERAL,
    }
    request = read(
        model="demo",
        system=[
            {"type": "text", "text": billing},
            {"type": "text", "text": "You are Claude Code.", "cache_control": EPHEMERAL},
            {"type": "text", "text": "Be brief.", "cache_control": EPHEMERAL},
        ],
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": reminder},
                    {"type": "text", "text": "List files", "cache_control": EPHEMERAL},
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Hm", "signature": "x"}, call],
            },
            {"role": "user", "content": [outcome, {"type": "text", "text": reminder}]},
        ],
        tools=tools,
        thinking={"type": "adaptive"},
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        output_config={"effort": "medium"},
        metadata={"user_id": '{"device_id":"x"}'},
        max_tokens=32000,
        stream=True,
    )
    assert request.ignored == ()
    assert [message.role for message in request.chat.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert request.chat.messages[0].content == ("You are Claude Code.", "Be brief.")
    assert len(request.chat.tools) == 24
