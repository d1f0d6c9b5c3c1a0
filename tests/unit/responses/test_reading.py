"""What requests of the Responses API become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pytest
from openai.types.responses import (
    ResponseIncludable,
    response_create_params,
    response_input_item_param,
    tool_param,
)

from ovchat_server.domain.chat import Message, Role, Tool, ToolCall, ToolChoice, ToolMode
from ovchat_server.domain.content import Image
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.responses import conversation
from ovchat_server.domain.responses.body import Included
from ovchat_server.domain.responses.items import HOSTED_ITEMS
from ovchat_server.domain.responses.parameters import RESPONSES
from ovchat_server.domain.responses.reading import read_responses_request
from ovchat_server.domain.responses.request import CalledTool, ResponsesRequest
from ovchat_server.domain.responses.tool_types import HOSTED_TOOLS
from ovchat_server.domain.structured_output import Constraint, ConstraintKind

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject

HI = Message(Role.USER, ("Hi",))
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}
CALLED = ToolCall("c1", "f", '{"a": 1}')
CUSTOM = {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": 'a "b"\n'}
PATCHED = ToolCall("c2", "patch", '{"input":"a \\"b\\"\\n"}')
SCHEMA: JsonObject = {"type": "object", "properties": {"z": {}, "a": {}}}
PNG = "data:image/png;base64,AA"


def read(**fields: Any) -> ResponsesRequest:
    return read_responses_request({"input": "Hi", **fields})


def thought(*texts: str, name: str = "content") -> dict[str, Any]:
    kind = {"content": "reasoning_text", "summary": "summary_text"}[name]
    parts = [{"type": kind, "text": text} for text in texts]
    return {"type": "reasoning", "id": "rs_1", "summary": [], name: parts}


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {"type": "message", "role": "assistant", "content": [part]}
    return {**item, "id": "msg_1", "status": "completed", "phase": None}


def given_back(kind: str, call: str, output: object) -> dict[str, Any]:
    return {"type": kind, "call_id": call, "output": output, "id": None, "status": "completed"}


def assistant(*texts: str, **others: Any) -> Message:
    return Message(Role.ASSISTANT, texts, **others)


ITEMS: dict[str, tuple[object, list[Message]]] = {
    "a string": ("Hi", [HI]),
    "a message without a type": ([{"role": "user", "content": "Hi"}], [HI]),
    "all roles and texts": (
        [
            {"role": "system", "content": "a"},
            {"role": "developer", "content": [{"type": "input_text", "text": "b"}]},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "c"}]},
            {"role": "user", "content": [{"type": "text", "text": "d"}], "type": None},
        ],
        [
            Message(Role.SYSTEM, ("a",)),
            Message(Role.DEVELOPER, ("b",)),
            assistant("c"),
            Message(Role.USER, ("d",)),
        ],
    ),
    "one answer is one message": (
        [thought("x", "y"), said("a"), CALL, CUSTOM],
        [assistant("a", reasoning_content="x\ny", tool_calls=(CALLED, PATCHED))],
    ),
    "reasoning and text begin another": (
        [said("a"), said("b"), thought("x", name="summary"), CALL, thought("y"), CALL],
        [
            assistant("a"),
            assistant("b"),
            assistant(reasoning_content="x", tool_calls=(CALLED,)),
            assistant(reasoning_content="y", tool_calls=(CALLED,)),
        ],
    ),
    "what came of calls": (
        [
            CALL,
            CUSTOM,
            given_back("function_call_output", "c1", "1"),
            given_back("custom_tool_call_output", "c2", [{"type": "input_text", "text": "2"}]),
            given_back("function_call_output", "earlier", ""),
        ],
        [
            assistant(tool_calls=(CALLED, PATCHED)),
            Message(Role.TOOL, ("1",), name="f", tool_call_id="c1"),
            Message(Role.TOOL, ("2",), name="patch", tool_call_id="c2"),
            Message(Role.TOOL, ("",), tool_call_id="earlier"),
        ],
    ),
    "a call in a namespace": (
        [{**CALL, "namespace": "git", "arguments": ""}],
        [assistant(tool_calls=(ToolCall("c1", "git__f", "{}"),))],
    ),
    "calls that were cut": (
        [
            {**CALL, "arguments": '{"a": [1, {"b": "c\\'},
            {**CALL, "arguments": '{"a'},
            {**CALL, "arguments": "f(1)"},
        ],
        [
            assistant(
                tool_calls=(
                    ToolCall("c1", "f", '{"a":[1,{"b":"c"}]}'),
                    ToolCall("c1", "f", "{}"),
                    ToolCall("c1", "f", "f(1)"),
                )
            )
        ],
    ),
    "reasoning that only OpenAI can read": (
        [{"type": "reasoning", "summary": [], "encrypted_content": "x"}, said("a")],
        [assistant("a")],
    ),
}


@pytest.mark.parametrize(("given", "messages"), ITEMS.values(), ids=ITEMS)
def test_items_are_messages(given: object, messages: list[Message]) -> None:
    request = read_responses_request({"input": given}, strict=True)  # type: ignore[dict-item]
    assert list(request.chat.messages) == messages


def test_a_cut_call_is_kept_as_if_it_were_given_back() -> None:
    cut = assistant(tool_calls=(ToolCall("c1", "f", '{"a'), PATCHED))
    assert conversation.said(cut) == assistant(tool_calls=(ToolCall("c1", "f", "{}"), PATCHED))


def test_images_know_their_fields() -> None:
    image = {"type": "input_image", "image_url": PNG, "detail": "low", "file_id": None}
    output = given_back("function_call_output", "c1", [image])
    message, result = read(input=[{"role": "user", "content": [image]}, output]).chat.messages
    assert message.images == result.images == (Image(PNG, low_detail=True),)
    assert str(message.images[0].field) == "input[0].content[0].image_url"
    assert str(result.images[0].field) == "input[1].output[0].image_url"


@pytest.mark.parametrize("kind", HOSTED_ITEMS)
def test_items_of_hosted_tools_are_left_out(kind: str) -> None:
    request = read(input=[said("a"), {"type": kind, "action": {"x": 1}}, CALL])
    assert request.chat.messages == (assistant("a", tool_calls=(CALLED,)),)
    assert request.ignored == ("input[1]",)


def test_all_of_openais_items_tools_and_parameters_are_known() -> None:
    def kinds(union: object) -> set[str]:
        members = [member.__annotations__.get("type") for member in get_args(union)]
        return {str(name) for kind in members for name in _literals(kind)}

    calls = {"function_call", "custom_tool_call"}
    served = {"message", "reasoning", "item_reference", *calls}
    served |= {f"{name}_output" for name in calls}
    items = kinds(response_input_item_param.ResponseInputItemParam)
    assert items <= served | set(HOSTED_ITEMS)
    tools = kinds(tool_param.ToolParam) - {"function", "custom", "namespace"}
    assert tools <= set(HOSTED_TOOLS)
    assert set(get_args(ResponseIncludable)) == set(get_args(Included))
    known = RESPONSES.served | RESPONSES.accepted | RESPONSES.refused.keys()
    assert known >= {*response_create_params.ResponseCreateParamsBase.__annotations__, "stream"}


def _literals(kind: object) -> set[object]:
    """The values of a literal, whatever is around it."""
    inner = get_args(kind)
    if not inner:
        return set()
    if all(isinstance(item, str) for item in inner):
        return set(inner)
    return set().union(*map(_literals, inner))


FUNCTION = {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}
PATCH = {"type": "custom", "name": "patch", "description": "Changes files."}


def grammar(syntax: str, definition: str) -> dict[str, Any]:
    return {**PATCH, "format": {"type": "grammar", "syntax": syntax, "definition": definition}}


def text(**limits: Any) -> JsonObject:
    properties: JsonObject = {"input": {"type": "string", **limits}}
    others = {"required": ["input"], "additionalProperties": False}
    return {"type": "object", "properties": properties, **others}


TOOLS: dict[str, tuple[list[Any], list[Tool], dict[str, CalledTool], list[str]]] = {
    "none": ([], [], {}, []),
    "a function": (
        [{**FUNCTION, "defer_loading": True, "output_schema": {}, "allowed_callers": None}],
        [Tool("f", None, SCHEMA, strict=True)],
        {"f": CalledTool("f")},
        [],
    ),
    "one that takes any text": (
        [{**PATCH, "format": {"type": "text"}}],
        [Tool("patch", "Changes files.", text())],
        {"patch": CalledTool("patch", custom=True)},
        [],
    ),
    "one with a pattern that has anchors": (
        [grammar("regex", r"^a$|^[$|]\$|(^|b$)$")],
        [Tool("patch", "Changes files.", text(pattern=r"^(?:a|[$|]\$|(^|b$))$"), strict=True)],
        {"patch": CalledTool("patch", custom=True)},
        [],
    ),
    "one with a pattern": (
        [grammar("regex", "a|b")],
        [Tool("patch", "Changes files.", text(pattern="^(?:a|b)$"), strict=True)],
        {"patch": CalledTool("patch", custom=True)},
        [],
    ),
    "one with a grammar": (
        [FUNCTION, grammar("lark", "start: X")],
        [
            Tool("f", None, SCHEMA, strict=True),
            Tool(
                "patch",
                "Changes files.\n\nThe input must match this Lark grammar:\nstart: X",
                text(),
            ),
        ],
        {"f": CalledTool("f"), "patch": CalledTool("patch", custom=True)},
        ["tools[1].format"],
    ),
    "a namespace": (
        [
            {
                "type": "namespace",
                "name": "git",
                "description": "Git.",
                "tools": [{"type": "function", "name": "log", "description": "Logs."}, PATCH],
            }
        ],
        [
            Tool("git__log", "Git.\n\nLogs.", None),
            Tool("git__patch", "Git.\n\nChanges files.", text()),
        ],
        {
            "git__log": CalledTool("log", "git"),
            "git__patch": CalledTool("patch", "git", custom=True),
        },
        [],
    ),
    "hosted ones": (
        [{"type": "web_search", "filters": {}}, FUNCTION, {"type": "unheard_of", "x": 1}],
        [Tool("f", None, SCHEMA, strict=True)],
        {"f": CalledTool("f")},
        ["tools[0]", "tools[2]"],
    ),
}


@pytest.mark.parametrize(("tools", "functions", "called", "ignored"), TOOLS.values(), ids=TOOLS)
def test_tools_are_functions(
    tools: list[Any], functions: list[Tool], called: dict[str, CalledTool], ignored: list[str]
) -> None:
    request = read_responses_request({"input": "Hi", "tools": tools}, strict=True)
    assert list(request.chat.tools) == functions
    assert request.tools == called
    assert list(request.ignored) == ignored
    assert request.chat.tool_choice.mode is (ToolMode.AUTO if functions else ToolMode.NONE)


SPACE = {"type": "namespace", "name": "git", "tools": [{"type": "function", "name": "log"}]}
CHOICES: list[tuple[object, ToolChoice]] = [
    (None, ToolChoice(ToolMode.AUTO)),
    ("required", ToolChoice(ToolMode.REQUIRED)),
    ("none", ToolChoice(ToolMode.NONE)),
    (
        {"type": "function", "name": "f"},
        ToolChoice(ToolMode.NAMED, allowed=("f",), parallel=False),
    ),
    (
        {"type": "function", "name": "log", "namespace": "git"},
        ToolChoice(ToolMode.NAMED, allowed=("git__log",), parallel=False),
    ),
    (
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "mcp", "server_label": "x"}, {"type": "custom", "name": "patch"}],
        },
        ToolChoice(ToolMode.REQUIRED, allowed=("patch",)),
    ),
    (
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]},
        ToolChoice(ToolMode.NONE),
    ),
]


@pytest.mark.parametrize(("given", "choice"), CHOICES)
def test_a_choice_is_of_functions(given: object, choice: ToolChoice) -> None:
    assert read(tools=[FUNCTION, PATCH, SPACE], tool_choice=given).chat.tool_choice == choice


def test_tools_formats_and_limits_know_their_fields() -> None:
    form = {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}
    request = read(
        tools=[FUNCTION, SPACE, grammar("regex", "a")],
        text={"format": form},
        max_output_tokens=9,
    )
    assert [str(tool.field) for tool in request.chat.tools] == [
        "tools[0].parameters",
        "tools[1].tools[0].parameters",
        "tools[2].format.definition",
    ]
    constraint, ending = request.chat.generation.constraint, request.chat.generation.ending
    assert isinstance(constraint, Constraint)
    assert (constraint.kind, constraint.value) == (ConstraintKind.JSON_SCHEMA, SCHEMA)
    assert str(constraint.field) == "text.format.schema"
    assert constraint.described == {"name": "x", "strict": True}
    assert (ending.max_tokens, str(ending.max_tokens_field)) == (9, "max_output_tokens")


def test_the_rest_is_read() -> None:
    request = read(
        model="demo",
        instructions="Be brief.",
        previous_response_id="resp_1",
        store=False,
        stream=True,
        stream_options={"include_obfuscation": False},
        text={"format": {"type": "json_object"}, "verbosity": "low"},
        reasoning={"effort": "none", "generate_summary": "auto"},
        thinking_token_budget=7,
        chat_template_kwargs={"x": 1},
        truncation="auto",
        top_logprobs=3,
        temperature=0,
        top_k=5,
        parallel_tool_calls=False,
        user="me",
    )
    chat, generation = request.chat, request.chat.generation
    assert (chat.model, request.instructions, request.previous_response_id, request.store) == (
        "demo",
        "Be brief.",
        "resp_1",
        False,
    )
    assert request.stream == StreamOptions(include_usage=True)
    assert generation.constraint
    assert generation.constraint.kind is ConstraintKind.JSON_OBJECT
    effort = {"reasoning_effort": "none", "enable_thinking": False}
    assert chat.template_arguments == {"x": 1, **effort}
    assert chat.thinking_budget == 7
    assert request.summarized
    assert chat.drops_oldest
    assert (generation.logprobs, generation.top_logprobs) == (True, 3)
    assert (generation.sampling.temperature, generation.sampling.top_k) == (0, 5)
    assert not chat.tool_choice.parallel
    assert (request.ignored, chat.accepted) == ((), ("user", "text.verbosity"))


def test_log_probabilities_are_included_without_alternatives() -> None:
    generation = read(include=["message.output_text.logprobs"]).chat.generation
    assert (generation.logprobs, generation.top_logprobs) == (True, 0)


def test_instructions_may_be_messages_of_text() -> None:
    items = [{"role": "developer", "content": "a"}, {"role": "system", "content": "b"}]
    assert read(instructions=items).instructions == "a\n\nb"


def test_a_response_repeats_what_it_was_asked() -> None:
    assert read().repeated == {
        "background": False,
        "frequency_penalty": 0,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "presence_penalty": 0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "truncation": "disabled",
        "user": None,
    }
    given = {
        "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
        "tool_choice": {"type": "function", "name": "f"},
        "metadata": {"a": "b"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "store": None,
    }
    repeated = read(**given).repeated
    nothing = {"description": None, "parameters": None, "strict": None}
    assert repeated["tools"] == [
        {"type": "function", "name": "f", **nothing},
        {"type": "web_search"},
    ]
    assert repeated["store"] is True
    for name in ("tool_choice", "metadata", "reasoning"):
        assert repeated[name] == given[name]


def test_items_are_listed_with_ids() -> None:
    [item] = read().input_items
    assert item.pop("id", "").startswith("msg_")  # type: ignore[union-attr]
    assert item == {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Hi"}],
    }
    call, message = read(input=[CALL, said("a")]).input_items
    assert str(call["id"]).startswith("fc_")
    assert {**call, "id": None} == {**CALL, "id": None}
    assert message == {name: value for name, value in said("a").items() if name != "phase"}


def test_what_changes_nothing_is_repeated_where_it_is_of_its_type() -> None:
    right = {"max_tool_calls": 3, "user": "a", "prompt_cache_key": "b", "safety_identifier": "c"}
    assert right.items() <= read(**right).repeated.items()
    for wrong in (True, 1.5, {"a": 1}, ["x"]):
        repeated = read(**dict.fromkeys(right, wrong)).repeated
        assert [repeated[name] for name in right] == [None] * len(right)
    assert read(max_tool_calls="x", user=1).repeated == read().repeated


def test_listed_items_have_ids_of_their_own() -> None:
    call = {**CALL, "id": "a"}
    items = read(input=[call, said("a"), call, {**CALL, "id": ""}, said("b")]).input_items
    names = [str(item["id"]) for item in items]
    assert names[:2] == ["a", "msg_1"]
    assert [name.split("_")[0] for name in names[2:]] == ["fc", "fc", "msg"]
    assert len({*names}) == 5


def test_items_are_listed_as_sdks_read_them() -> None:
    image = {"type": "input_image", "image_url": PNG, "detail": None, "file_id": None}
    message = {"role": "user", "content": [image], "id": "msg_1", "status": None}
    output = given_back("function_call_output", "c1", [image, {**image, "detail": "low"}])
    answer = {"role": "assistant", "content": "a", "id": "msg_2"}
    listed = {"type": "input_image", "image_url": PNG, "detail": "auto"}
    assert read(input=[message, {**output, "id": "fco_1"}, answer]).input_items == (
        {"type": "message", "role": "user", "content": [listed], "id": "msg_1"},
        {**output, "id": "fco_1", "output": [listed, {**listed, "detail": "low"}]},
        {
            **answer,
            "type": "message",
            "content": [{"type": "output_text", "text": "a", "annotations": []}],
        },
    )


def test_what_goes_on_needs_no_input() -> None:
    request = read_responses_request({"previous_response_id": "resp_1", "input": None})
    assert request.chat.messages == request.input_items == ()


def test_what_codex_sends_is_served() -> None:
    request = read_responses_request(
        {
            "model": "demo",
            "instructions": "You are Codex.",
            "input": [
                {
                    "type": "message",
                    "role": "developer",
                    "content": [{"type": "input_text", "text": "Sandboxed."}],
                },
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "List files"}],
                },
                {"type": "reasoning", "summary": [], "content": None, "encrypted_content": None},
                {**CALL, "name": "ls", "namespace": "mcp"},
                {"type": "web_search_call", "status": "completed", "action": {"type": "search"}},
                {
                    "type": "function_call_output",
                    "call_id": "c1",
                    "output": [{"type": "input_text", "text": "a.txt"}],
                },
            ],
            "tools": [
                {"type": "function", "name": "exec", "strict": False, "parameters": SCHEMA},
                {"type": "namespace", "name": "mcp", "description": "", "tools": [FUNCTION]},
                grammar("lark", "start: X"),
                {"type": "web_search", "external_web_access": False},
            ],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "reasoning": {"effort": "medium", "summary": "auto"},
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "0199",
            "text": {"verbosity": "low"},
            "client_metadata": {"x": "y"},
        },
        strict=True,
    )
    assert request.ignored == ("input[4]", "tools[2].format", "tools[3]")
    assert [tool.name for tool in request.chat.tools] == ["exec", "mcp__f", "patch"]
    system, user, answer, result = request.continuing().messages
    assert system == Message(Role.SYSTEM, ("You are Codex.", "Sandboxed."))
    assert user.text == "List files"
    assert answer.tool_calls == (ToolCall("c1", "mcp__ls", '{"a": 1}'),)
    assert (result.name, result.text) == ("mcp__ls", "a.txt")
    assert request.summarized
    assert not request.store
