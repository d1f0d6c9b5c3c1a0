"""Reading the messages of a request: content, roles, calls, and where a fault stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.chat import Message, Role, ToolCall
from ovchat_server.domain.content import Image
from ovchat_server.domain.messages import UNSUPPORTED_PARTS, read_messages
from ovchat_server.domain.reader import Reader

if TYPE_CHECKING:
    from ovchat_server.domain.errors import Violation

TEXT = {"type": "text", "text": "Hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"b":1,"a":2}'}}


def read(*messages: Any) -> tuple[tuple[Message, ...], list[Violation]]:
    violations: list[Violation] = []
    return read_messages(Reader({"messages": list(messages)}, violations)), violations


def one(**fields: Any) -> Message:
    messages, violations = read(fields)
    assert violations == []
    return messages[0]


def faults(*messages: Any) -> list[tuple[str, str]]:
    return [(violation.field, violation.code) for violation in read(*messages)[1]]


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
def test_every_role_may_speak(role: str) -> None:
    assert one(role=role, content="Hi", name="Ann") == Message(Role(role), ("Hi",), name="Ann")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", ""),
        ("Hi\n", "Hi\n"),
        ([TEXT], "Hi"),
        ([TEXT, TEXT], "Hi\nHi"),
        ([{"type": "text", "text": ""}], ""),
        ([{"type": "refusal", "refusal": "No"}], "No"),
        ([TEXT | {"prompt_cache_breakpoint": {"mode": "explicit"}}], "Hi"),
    ],
)
def test_content_is_text_or_parts_of_it(content: Any, text: str) -> None:
    assert one(role="user", content=content).text == text


def test_an_assistant_may_call_instead_of_speaking() -> None:
    message = one(role="assistant", content=None, tool_calls=[CALL])
    assert message.content == ()
    assert message.tool_calls == (ToolCall("c1", "f", '{"b":1,"a":2}'),)


def test_an_assistants_turn_may_come_back_as_it_was_answered() -> None:
    # Cut inside its reasoning an answer has neither content nor calls.
    message = one(role="assistant", content=None, reasoning_content="Hmm")
    assert (message.content, message.reasoning_content) == ((), "Hmm")


def test_an_assistants_refusal_is_what_it_said() -> None:
    assert one(role="assistant", content=None, refusal="No").text == "No"
    assert faults({"role": "user", "refusal": "No"}) == [("messages[0].refusal", "invalid_value")]


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": "b"}, "b"),
        ({"reasoning_content": "a", "reasoning": "b"}, "a"),
        ({"reasoning_content": None}, None),
    ],
)
def test_reasoning_has_two_names(fields: dict[str, Any], reasoning: str | None) -> None:
    assert one(role="assistant", content="x", **fields).reasoning_content == reasoning


def test_a_tool_answers_a_call() -> None:
    message = one(role="tool", content=[TEXT], tool_call_id="c1")
    assert message == Message(Role.TOOL, ("Hi",), tool_call_id="c1")


def calling(arguments: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [CALL, CALL | {"function": function}]}


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":' * 128 + "1" + "}" * 128,
        "[" * 128 + "]" * 128,
        '{"a":"' + "[" * 1000 + '"}',
        '{"a":"' + "\\\\" * 5 + '\\"' + "[]" * 200 + "[" * 200 + "]" * 200 + '"}',
        "[" + "{}," * 1000 + "{}]",
        # No JSON: a text like any other.
        "[" * 100 + "{" * 100 + "x",
    ],
)
def test_a_calls_arguments_may_be_as_deep_as_any_json(arguments: str) -> None:
    assert one(**calling(arguments)).tool_calls[1].arguments == arguments


@pytest.mark.parametrize("depth", [129, 300, 3000, 1_000_000])
@pytest.mark.parametrize(("opening", "closing"), ["[]", ('{"a":[', "]}")])
def test_a_calls_arguments_that_are_deeper_are_refused_by_name(
    depth: int, opening: str, closing: str
) -> None:
    arguments = opening * depth + closing * depth
    field = "messages[0].tool_calls[1].function.arguments"
    assert faults(calling(arguments)) == [(field, "invalid_value")]


PARTS = {"role": "user", "content": [TEXT] * 1000}
CALLS = {"role": "assistant", "content": [TEXT] * 400, "tool_calls": [CALL] * 600}


def test_all_parts_and_calls_of_a_conversation_have_a_bound_together() -> None:
    some = [PARTS, CALLS] * 8
    last = {"role": "user", "content": [TEXT] * 384}
    messages, violations = read(*some, last)
    assert (len(messages), violations) == (17, [])
    _, [violation] = read(*some, last, PARTS)
    assert violation.field == "messages"
    assert "16384" in violation.message
    assert "17384" in violation.message


def test_parts_beyond_the_bound_are_not_read_one_by_one() -> None:
    wrong = {"role": "user", "content": [5] * 1000}
    assert faults(*[wrong] * 17) == [("messages", "invalid_value")]


@pytest.mark.parametrize("function", [{"name": "f"}, {"name": "f", "arguments": ""}])
def test_a_call_may_lack_arguments(function: dict[str, Any]) -> None:
    message = one(role="assistant", tool_calls=[{"id": "c1", "function": function}])
    assert message.tool_calls == (ToolCall("c1", "f", "{}"),)


def test_messages_must_not_be_empty() -> None:
    assert faults() == [("messages", "invalid_value")]


@pytest.mark.parametrize(
    ("message", "path", "code"),
    [
        ("Hi", "", "invalid_type"),
        (None, "", "invalid_type"),
        ({"content": "x"}, ".role", "missing_required_parameter"),
        ({"role": None, "content": "x"}, ".role", "missing_required_parameter"),
        ({"role": 1, "content": "x"}, ".role", "invalid_type"),
        ({"role": "functions", "content": "x"}, ".role", "invalid_value"),
        ({"role": "user", "content": True}, ".content", "invalid_type"),
        ({"role": "assistant", "audio": {"id": "a"}}, ".audio", "unsupported_value"),
        ({"role": "user", "content": 5}, ".content", "invalid_type"),
        ({"role": "assistant", "content": {}}, ".content", "invalid_type"),
        ({"role": "user", "content": ["x"]}, ".content[0]", "invalid_type"),
        ({"role": "user", "content": [{}]}, ".content[0].type", "missing_required_parameter"),
        ({"role": "user", "content": [{"type": "x"}]}, ".content[0].type", "invalid_value"),
        ({"role": "user", "content": [{"type": []}]}, ".content[0].type", "invalid_type"),
        (
            {"role": "user", "content": [TEXT, {"type": "text"}]},
            ".content[1].text",
            "missing_required_parameter",
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": 1}]},
            ".content[0].text",
            "invalid_type",
        ),
        ({"role": "user", "content": "x", "name": 1}, ".name", "invalid_type"),
        ({"role": "tool", "content": "x"}, ".tool_call_id", "missing_required_parameter"),
        (
            {"role": "tool", "content": "x", "tool_call_id": 1},
            ".tool_call_id",
            "invalid_type",
        ),
        ({"role": "user", "content": "x", "tool_calls": [CALL]}, ".tool_calls", "invalid_value"),
        ({"role": "assistant", "tool_calls": {}}, ".tool_calls", "invalid_type"),
        ({"role": "assistant", "tool_calls": ["x"]}, ".tool_calls[0]", "invalid_type"),
        (
            {"role": "assistant", "tool_calls": [CALL | {"id": None}]},
            ".tool_calls[0].id",
            "missing_required_parameter",
        ),
        (
            {"role": "assistant", "tool_calls": [CALL, CALL | {"type": "custom"}]},
            ".tool_calls[1].type",
            "invalid_value",
        ),
        (
            {"role": "assistant", "tool_calls": [CALL | {"function": None}]},
            ".tool_calls[0].function",
            "missing_required_parameter",
        ),
        (
            {"role": "assistant", "tool_calls": [CALL | {"function": {}}]},
            ".tool_calls[0].function.name",
            "missing_required_parameter",
        ),
        (
            {"role": "assistant", "tool_calls": [CALL | {"function": {"name": 1}}]},
            ".tool_calls[0].function.name",
            "invalid_type",
        ),
        (
            {
                "role": "assistant",
                "tool_calls": [CALL | {"function": {"name": "f", "arguments": {}}}],
            },
            ".tool_calls[0].function.arguments",
            "invalid_type",
        ),
        (
            {"role": "assistant", "function_call": {"name": "f"}, "tool_calls": [CALL]},
            ".function_call",
            "invalid_value",
        ),
        ({"role": "assistant", "function_call": "f"}, ".function_call", "invalid_type"),
        (
            {"role": "assistant", "function_call": {"arguments": "{}"}},
            ".function_call.name",
            "missing_required_parameter",
        ),
        ({"role": "user", "function_call": {"name": "f"}}, ".function_call", "invalid_value"),
        ({"role": "function", "content": "4"}, ".name", "missing_required_parameter"),
        (
            {"role": "assistant", "content": "x", "reasoning_content": []},
            ".reasoning_content",
            "invalid_type",
        ),
    ],
)
def test_a_fault_is_told_by_its_exact_place(message: Any, path: str, code: str) -> None:
    good = {"role": "user", "content": "Hi"}
    assert faults(good, good, message) == [(f"messages[2]{path}", code)]


def image(**fields: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": "data:,", **fields}}


def test_texts_and_images_keep_their_order() -> None:
    pictured = image(url="https://example.com/a.png", detail="low")
    message = one(role="user", content=[TEXT, pictured, {"type": "text", "text": "?"}])
    assert message.content == ("Hi", Image("https://example.com/a.png", low_detail=True), "?")
    assert message.text == "Hi\n?"
    assert [str(item.field) for item in message.images] == ["messages[0].content[1].image_url"]


@pytest.mark.parametrize(
    ("part", "path", "code"),
    [
        ({"type": "image_url"}, ".image_url", "missing_required_parameter"),
        ({"type": "image_url", "image_url": "a"}, ".image_url", "invalid_type"),
        (image(url=None), ".image_url.url", "missing_required_parameter"),
        (image(url=1), ".image_url.url", "invalid_type"),
        (image(detail="best"), ".image_url.detail", "invalid_value"),
    ],
)
def test_a_fault_of_an_image_is_told_by_its_place(part: Any, path: str, code: str) -> None:
    found = faults({"role": "user", "content": [TEXT, part]})
    assert found == [(f"messages[0].content[1]{path}", code)]


@pytest.mark.parametrize("sent", [None, {}, {"url": "data:,"}, {"data": "R0lGODlh"}])
def test_json_has_no_images_by_value(sent: Any) -> None:
    _, [violation] = read({"role": "user", "content": [{"type": "image", "image": sent}]})
    assert violation.message == (
        "messages[0].content[0].type must be one of 'text', 'refusal', 'image_url', got 'image'."
    )


@pytest.mark.parametrize("kind", UNSUPPORTED_PARTS)
def test_a_part_that_is_no_text_is_refused_by_its_place(kind: str) -> None:
    part = {"type": kind, kind: {}}
    assert faults({"role": "user", "content": [TEXT, part]}) == [
        ("messages[0].content[1].type", "unsupported_value")
    ]


def test_all_faults_of_a_conversation_are_found() -> None:
    found = faults({"role": "x"}, {"role": "user"}, {"role": "tool", "content": [{"type": "y"}]})
    assert [path for path, _ in found] == [
        "messages[0].role",
        "messages[2].content[0].type",
        "messages[2].tool_call_id",
    ]


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
@pytest.mark.parametrize(
    "fields", [{}, {"content": None}, {"content": []}, {"content": ""}], ids=str
)
def test_missing_null_and_empty_content_are_no_text(role: str, fields: dict[str, Any]) -> None:
    (message,), violations = read({"role": role, **fields})
    assert (message.text, violations) == ("", [])


def test_openais_older_calls_and_results_are_read_as_tools() -> None:
    messages, violations = read(
        {"role": "user", "content": "?"},
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "4"},
        {"role": "assistant", "content": None, "function_call": {"name": "g"}},
        {"role": "function", "name": "g", "content": "5"},
        {"role": "function", "name": "f", "content": "6"},
    )
    assert violations == []
    (first,), (second,) = messages[1].tool_calls, messages[3].tool_calls
    assert (first.name, second.name, second.arguments) == ("f", "g", "{}")
    assert first.id != second.id
    results = [message for message in messages if message.role is Role.TOOL]
    assert [(item.tool_call_id, item.text) for item in results] == [
        (first.id, "4"),
        (second.id, "5"),
        (first.id, "6"),
    ]


def test_a_functions_result_may_come_without_its_call() -> None:
    # A client that keeps the end of a conversation only.
    message = one(role="function", name="f", content="4")
    assert (message.role, message.name, message.text) == (Role.TOOL, "f", "4")
    assert message.tool_call_id
