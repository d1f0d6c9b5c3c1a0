"""What the messages of requests of the Messages API become."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest
from anthropic.types.beta import BetaContentBlockParam

from ovchat_server.domain.anthropic.blocks import HOSTED_BLOCKS, SHOWN, UNSUPPORTED_BLOCKS
from ovchat_server.domain.anthropic.reading import read_messages_request
from ovchat_server.domain.anthropic.signatures import hiding_signature, shown_signature
from ovchat_server.domain.chat import Message, PromptEnding, Role, ToolCall
from ovchat_server.domain.content import Image

HINTS = {"cache_control": {"type": "ephemeral"}}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {"z": 1, "a": "é"}, "caller": None}
CALL = ToolCall("t1", "f", '{"z":1,"a":"é"}')
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
LINKED = {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}, **HINTS}
HI = Message(Role.USER, ("Hi",))
CALLED = Message(Role.ASSISTANT, tool_calls=(CALL,))
HEADER = "x-anthropic-billing-header: cc_version=2.1.37; cch=abc12;"


def text(words: str, **others: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **others}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else [*content]}


def assistant(*content: Any) -> dict[str, Any]:
    return {**user(*content), "role": "assistant"}


def result(content: Any = None, **others: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t1", "content": content, **HINTS, **others}


def thought(words: str, signature: str = "") -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": signature}


def plain(words: str, **others: Any) -> dict[str, Any]:
    source = {"type": "text", "media_type": "text/plain", "data": words}
    return {"type": "document", "source": source, "citations": {"enabled": True}, **others}


def told(*content: Any, name: str | None = "f") -> Message:
    return Message(Role.TOOL, content, name=name, tool_call_id="t1")


CONVERSATIONS: dict[str, tuple[list[Any], list[Message]]] = {
    "a text": ([user("Hi")], [HI]),
    "blocks of text": (
        [user(text("<system-reminder>a</system-reminder>", citations=None), text("b", **HINTS))],
        [Message(Role.USER, ("<system-reminder>a</system-reminder>", "b"))],
    ),
    "images": (
        [user(PNG, text("?"), LINKED)],
        [Message(Role.USER, (Image("data:image/png;base64,AA"), "?", Image("https://a/b.png")))],
    ),
    "a document": (
        [user(plain("c", title="a", context="b"), plain("d"))],
        [Message(Role.USER, ("a\n\nb\n\nc", "d"))],
    ),
    "neighbours of a role are a turn": (
        [
            user("a"),
            user(text("b")),
            assistant("c"),
            assistant(thought("d"), text("e"), USE),
            user(result("f")),
            user("Hi"),
        ],
        [
            Message(Role.USER, ("a", "b")),
            Message(Role.ASSISTANT, ("c", "e"), tool_calls=(CALL,), reasoning_content="d"),
            told("f"),
            HI,
        ],
    ),
    "what is empty is left out": (
        [user(""), user("Hi"), assistant(text("")), user(text(""), text("a")), assistant("")],
        [Message(Role.USER, ("Hi", "a"))],
    ),
    "what only Anthropic's service can read is left out": (
        [
            user("a"),
            assistant({"type": "redacted_thinking", "data": "x"}, thought("", "theirs")),
            user("b"),
        ],
        [Message(Role.USER, ("a", "b"))],
    ),
    "thinking": (
        [
            user("Hi"),
            assistant(
                thought("a", shown_signature("a")), thought("", hiding_signature("b")), text("c")
            ),
            user("Hi"),
        ],
        [HI, Message(Role.ASSISTANT, ("c",), reasoning_content="a\nb"), HI],
    ),
    "results come before what else the user says": (
        [
            assistant(USE, {**USE, "id": "t2", "name": "g", "input": {}}),
            user(text("Hi"), result([text("a"), LINKED]), {**result("b"), "tool_use_id": "t2"}),
        ],
        [
            Message(Role.ASSISTANT, tool_calls=(CALL, ToolCall("t2", "g", "{}"))),
            told("a", Image("https://a/b.png")),
            Message(Role.TOOL, ("b",), name="g", tool_call_id="t2"),
            HI,
        ],
    ),
    "results of nothing, of no call, of a search for tools, of a document": (
        [
            user(result()),
            assistant(USE),
            user(result([]), result([{"type": "tool_reference", "tool_name": "g"}])),
            user(result([text(""), plain("a")], toolset_name=None)),
        ],
        [told(name=None), CALLED, told(), told("g"), told("a")],
    ),
    "errors": (
        [
            assistant(USE),
            user(
                result("a", is_error=True),
                result("Error: b", is_error=True),
                result([LINKED, text("c")], is_error=True),
                result(is_error=True),
                result("d", is_error=False),
            ),
        ],
        [
            CALLED,
            told("Error: a"),
            told("Error: b"),
            told("Error: ", Image("https://a/b.png"), "c"),
            told("Error: "),
            told("d"),
        ],
    ),
    "a system's message may say nothing": (
        [
            {"role": "system", "output_config": {"effort": "low"}},
            user("Hi"),
        ],
        [HI],
    ),
    "a system's message amid others is the user's": (
        [
            user("Hi"),
            {"role": "system", "content": [text("a", **HINTS)]},
            assistant("b"),
            {"role": "system", "content": "c"},
            user("Hi"),
        ],
        [
            Message(Role.USER, ("Hi", "<system-reminder>\na\n</system-reminder>")),
            Message(Role.ASSISTANT, ("b",)),
            Message(Role.USER, ("<system-reminder>\nc\n</system-reminder>", "Hi")),
        ],
    ),
    "one for a turn goes with it": (
        [
            user("Hi"),
            {"role": "system", "content": "a", "clear_at": "next_user_message"},
            assistant("b"),
            user("Hi"),
            {"role": "system", "content": "c", "clear_at": "next_user_message"},
        ],
        [
            HI,
            Message(Role.ASSISTANT, ("b",)),
            Message(Role.USER, ("Hi", "<system-reminder>\nc\n</system-reminder>")),
        ],
    ),
}


@pytest.mark.parametrize(("given", "messages"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_blocks_are_messages(given: list[Any], messages: list[Message]) -> None:
    request = read_messages_request({"max_tokens": 9, "messages": given}, strict=True)
    assert list(request.chat.messages) == messages
    assert request.ignored == ()


@pytest.mark.parametrize(
    ("system", "kept", "messages"),
    [
        ("a", "a", [("a",)]),
        ([text("a", **HINTS), text("b")], None, [("a", "b")]),
        ([], None, []),
        ("", None, []),
        ([text(HEADER), text("a")], (HEADER, "a"), [("a",)]),
        (f"{HEADER}\n\na\nb", (f"{HEADER}\n\na\nb",), [("a\nb",)]),
        (HEADER, (HEADER,), []),
        ([text("a"), text(HEADER)], None, [("a", HEADER)]),
    ],
)
def test_what_the_system_says_comes_first(system: Any, kept: Any, messages: list[Any]) -> None:
    fields = {"max_tokens": 9, "system": system, "messages": [user("Hi")]}
    expected = [Message(Role.SYSTEM, content) for content in messages]
    assert list(read_messages_request(fields).chat.messages) == [*expected, HI]
    if kept is not None:
        whole = read_messages_request(fields, keep_billing_header=True).chat.messages
        assert whole == (Message(Role.SYSTEM, tuple(kept)), HI)


def test_a_system_message_at_the_beginning_joins_it() -> None:
    messages = [{"role": "system", "content": "b"}, user("Hi")]
    request = read_messages_request({"max_tokens": 9, "system": "a", "messages": messages})
    assert request.chat.messages == (Message(Role.SYSTEM, ("a", "b")), HI)


def test_images_know_their_fields() -> None:
    messages = [user("a"), user(text("b"), PNG), assistant(USE), user(result([text("c"), LINKED]))]
    request = read_messages_request({"max_tokens": 9, "system": "d", "messages": messages})
    fields = [str(image.field) for message in request.chat.messages for image in message.images]
    assert fields == ["messages[1].content[1].source", "messages[3].content[0].content[1].source"]


@pytest.mark.parametrize("kind", HOSTED_BLOCKS)
def test_blocks_of_hosted_tools_are_left_out(kind: str) -> None:
    said = assistant(text("a"), {**SEARCH, "type": kind}, text("b"))
    request = read_messages_request(
        {"max_tokens": 9, "messages": [user("Hi"), said, user("Hi")]}, strict=True
    )
    assert request.chat.messages == (HI, Message(Role.ASSISTANT, ("a", "b")), HI)
    assert request.ignored == ("messages[1].content[1]",)


@pytest.mark.parametrize(
    ("last", "ending"),
    [
        (user("Hi"), PromptEnding.ASSISTANT_TURN),
        (assistant("The answer is ("), PromptEnding.FINAL_MESSAGE),
        (assistant(thought("a"), text("b")), PromptEnding.FINAL_MESSAGE),
        (assistant(text("a"), USE), PromptEnding.ASSISTANT_TURN),
        (assistant(thought("a")), PromptEnding.ASSISTANT_TURN),
        (assistant(""), PromptEnding.ASSISTANT_TURN),
    ],
)
def test_a_last_text_of_the_assistants_is_continued(last: Any, ending: PromptEnding) -> None:
    request = read_messages_request({"max_tokens": 9, "messages": [user("Hi"), last]})
    assert request.chat.prompt_ending is ending


def test_all_of_anthropics_blocks_are_known() -> None:
    kinds = {
        get_args(get_type_hints(member)["type"])[0]
        for member in get_args(BetaContentBlockParam)
        if hasattr(member, "__annotations__")
    }
    served = {*SHOWN, "tool_use", "tool_result", "thinking", "redacted_thinking"}
    assert len(kinds) > 20
    assert kinds <= served.union(HOSTED_BLOCKS, UNSUPPORTED_BLOCKS)
