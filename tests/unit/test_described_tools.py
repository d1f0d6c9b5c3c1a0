"""Tools on models whose chat template knows none: what such a template is given instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.chat.described_tools import tool_description
from ovchat_server.chat.dialects.registry import choose_dialects
from ovchat_server.chat.prompt import Conversation, PromptRenderer
from ovchat_server.chat.template import ChatTemplate
from ovchat_server.domain.chat import Message, PromptEnding, Role, Tool, ToolCall
from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import InvalidRequestError
from tests.unit.test_template_fidelity import CASES, FAMILIES, source, template
from tests.unit.text_tools import byte_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

SYSTEM = Message(Role.SYSTEM, ("Be brief.",))
DEVELOPER = Message(Role.DEVELOPER, ("Be brief.",))
USER = Message(Role.USER, ("Weather?",))
CALL = Message(
    Role.ASSISTANT,
    (),
    tool_calls=(ToolCall("c1", "f", '{"z": "é", "a": 1}'), ToolCall("c2", "g", "{}")),
)
RESULTS = (
    Message(Role.TOOL, ("sun",), tool_call_id="c1"),
    Message(Role.TOOL, ("",), tool_call_id="c2"),
)
DONE = Message(Role.ASSISTANT, ("Sunny.",))
TOOL = Tool("f", "Does é", {"type": "object", "properties": {"z": {}, "a": {}}})

DESCRIPTION = """\
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{"type": "function", "function": {"name": "f", "description": "Does é", \
"parameters": {"type": "object", "properties": {"z": {}, "a": {}}}}}
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""
CALLS = """\
<tool_call>
{"name": "f", "arguments": {"z": "é", "a": 1}}
</tool_call>
<tool_call>
{"name": "g", "arguments": {}}
</tool_call>"""
RESPONSES = """\
<tool_response>
sun
</tool_response>
<tool_response>

</tool_response>"""
# Those whose model would never see its tools.
KNOW_NONE = (
    "chatml",
    "gemma-2",
    "gemma-3",
    "llava-1.5",
    "llava-next",
    "mistral-large-2411",
    "phi-3.5",
    "phi-4",
    "pixtral",
    "qwen2.5-vl",
    "smollm3",
    "smolvlm",
)
# Has no turn but the user's and the assistant's.
NO_SYSTEM = """\
{%- for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"""
TOKENIZER = byte_tokenizer()


def renderer(model: ChatTemplate, tool_parser: str = "auto") -> PromptRenderer:
    """As a model's is built."""
    dialects = choose_dialects(model.source, tool_parser, "auto", knows_tools=model.knows_tools)
    return PromptRenderer(model, TOKENIZER, tool_description(model, dialects))


def prompt(
    model: ChatTemplate | str,
    *messages: Message,
    tools: Sequence[Tool] = (TOOL,),
    ending: PromptEnding = PromptEnding.NOTHING,
) -> str:
    family = template(model) if isinstance(model, str) else model
    return renderer(family).render(Conversation(messages, tools, ending=ending)).text


def chatml(*turns: tuple[str, str]) -> str:
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)


@pytest.mark.parametrize("first", [SYSTEM, DEVELOPER], ids=["system", "developer"])
def test_tools_are_described_below_the_system_text(first: Message) -> None:
    expected = chatml(("system", f"Be brief.\n\n{DESCRIPTION}"), ("user", "Weather?"))
    assert prompt("chatml", first, USER) == expected


@pytest.mark.parametrize("system", [(), (Message(Role.SYSTEM, ("",)),)], ids=["none", "empty"])
def test_without_system_text_the_description_is_all_of_it(system: tuple[Message, ...]) -> None:
    expected = chatml(("system", DESCRIPTION), ("user", "Weather?"))
    assert prompt("chatml", *system, USER) == expected


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.tools])
def test_the_words_are_those_of_qwen(name: str) -> None:
    case = CASES[name]
    # Without one Qwen's template has a system text of its own.
    messages = (SYSTEM, *(message for message in case.messages if message.role is not Role.SYSTEM))
    theirs = template("qwen2.5").render(messages, case.tools, ending=PromptEnding.NOTHING)
    assert prompt("chatml", *messages, tools=case.tools) == theirs


def test_without_tools_nothing_is_described() -> None:
    assert prompt("chatml", USER, tools=()) == chatml(("user", "Weather?"))


@pytest.mark.parametrize("tools", [(), (TOOL,)], ids=["tools forgotten", "tools"])
def test_calls_and_results_are_written_into_the_messages(tools: tuple[Tool, ...]) -> None:
    begun = [("system", DESCRIPTION)] if tools else []
    assert prompt("chatml", USER, CALL, *RESULTS, DONE, tools=tools) == chatml(
        *begun,
        ("user", "Weather?"),
        ("assistant", CALLS),
        ("user", RESPONSES),
        ("assistant", "Sunny."),
    )


def test_images_of_results_stay_within_them() -> None:
    describe = tool_description(template("chatml"), choose_dialects("", "hermes", "none"))
    assert describe
    results = (
        Message(Role.TOOL, ("a", Image("b")), tool_call_id="c1"),
        Message(Role.USER, (Image("c"),)),
    )
    [turn] = describe(Conversation(results)).messages
    assert turn.content == ("<tool_response>\na", Image("b"), "</tool_response>", Image("c"))


def test_what_was_said_beside_calls_stays_before_them() -> None:
    said = Message(Role.ASSISTANT, ("Let me see.",), tool_calls=CALL.tool_calls)
    assert chatml(("assistant", f"Let me see.\n{CALLS}")) in prompt("chatml", USER, said)


def test_reasoning_stays_beside_calls() -> None:
    shows = ChatTemplate(
        "{% for m in messages %}{{ m.reasoning_content }}{{ m.content }}{% endfor %}", {}
    )
    said = Message(Role.ASSISTANT, ("x",), tool_calls=CALL.tool_calls, reasoning_content="Hm.")
    assert prompt(shows, said, tools=()) == f"Hm.x\n{CALLS}"


def test_arguments_that_are_no_object_stay_text() -> None:
    call = Message(Role.ASSISTANT, (), tool_calls=(ToolCall("c", "f", 'f("1")'),))
    assert '{"name": "f", "arguments": "f(\\"1\\")"}' in prompt("chatml", call)


@pytest.mark.parametrize("family", KNOW_NONE)
def test_a_user_behind_results_leaves_the_roles_alternating(family: str) -> None:
    text = prompt(family, USER, CALL, *RESULTS, USER)
    assert f"{RESPONSES}\nWeather?" in text
    assert DESCRIPTION in text


def test_only_the_message_next_to_a_result_is_joined_with_it() -> None:
    text = prompt("chatml", CALL, RESULTS[0], USER, USER, tools=())
    assert text.endswith(
        chatml(("user", "<tool_response>\nsun\n</tool_response>\nWeather?"), ("user", "Weather?"))
    )


@pytest.mark.parametrize(
    "model", ["gemma-2", ChatTemplate(NO_SYSTEM, {})], ids=["refuses", "drops"]
)
def test_without_a_system_role_the_first_user_reads_the_description(model: Any) -> None:
    assert f"{DESCRIPTION}\n\nWeather?" in prompt(model, USER, DONE, USER)
    assert prompt(model, USER, DONE, USER).count("# Tools") == 1


def test_a_dropped_system_message_is_still_dropped() -> None:
    expected = f"<user>{DESCRIPTION}\n\nWeather?</>"
    assert prompt(ChatTemplate(NO_SYSTEM, {}), SYSTEM, USER) == expected


@pytest.mark.parametrize("messages", [(), (DONE, USER)], ids=["nobody", "the assistant"])
def test_a_user_who_does_not_begin_is_given_a_turn(messages: tuple[Message, ...]) -> None:
    assert prompt(ChatTemplate(NO_SYSTEM, {}), *messages).startswith(f"<user>{DESCRIPTION}</>")


@pytest.mark.parametrize("messages", [(SYSTEM,), (SYSTEM, USER), (SYSTEM, DONE)], ids=len)
def test_a_system_message_is_refused_as_without_tools(messages: tuple[Message, ...]) -> None:
    with pytest.raises(InvalidRequestError, match="System role not supported"):
        prompt("gemma-2", *messages)


@pytest.mark.parametrize("family", ["chatml", "gemma-2"])
def test_a_message_is_continued_without_the_calls_behind_it(family: str) -> None:
    said = Message(Role.ASSISTANT, ("Let me",), tool_calls=CALL.tool_calls)
    for message in (said, Message(Role.ASSISTANT, ("Let me",))):
        text = prompt(family, USER, message, ending=PromptEnding.FINAL_MESSAGE)
        assert DESCRIPTION in text
        assert text.endswith("\nLet me")


def test_calls_alone_cannot_be_continued() -> None:
    with pytest.raises(InvalidRequestError, match="the final one has no content"):
        prompt("chatml", USER, CALL, ending=PromptEnding.FINAL_MESSAGE)


@pytest.mark.parametrize("family", ["chatml", "gemma-2"])
def test_a_users_message_is_continued_below_the_description(family: str) -> None:
    text = prompt(family, USER, ending=PromptEnding.FINAL_MESSAGE)
    assert DESCRIPTION in text
    assert text.endswith("Weather?")


@pytest.mark.parametrize("family", FAMILIES)
def test_only_templates_that_know_no_tools_get_a_description(family: str) -> None:
    model = template(family)
    for tool_parser in ("auto", "hermes", "none", "mistral"):
        dialects = choose_dialects(
            source(family), tool_parser, "none", knows_tools=model.knows_tools
        )
        described = tool_description(model, dialects) is not None
        # DeepSeek's have no place for tools either, but show how calls are written.
        mine = family.startswith("deepseek-") if tool_parser == "hermes" else False
        wanted = tool_parser in ("auto", "hermes") and family in KNOW_NONE
        assert described == (wanted or mine), tool_parser


def test_a_template_that_has_tools_by_another_name_only_is_told_of_them() -> None:
    # As SmolLM3's, which callers give their tools as an argument of the template.
    shows = ChatTemplate("{{ xml_tools }}<tool_call>{{ messages[0].content }}", {})
    assert prompt(shows, USER) == f"<tool_call>{DESCRIPTION}"


@pytest.mark.parametrize("tool_parser", ["none", "llama3"])
def test_with_another_parser_a_template_gets_what_was_said(tool_parser: str) -> None:
    shows = ChatTemplate("{{ messages | tojson }}", {})
    messages = (SYSTEM, USER, CALL, *RESULTS)
    found = renderer(shows, tool_parser).render(Conversation(messages, [TOOL]))
    assert found.text == shows.render(messages, [TOOL])


def test_a_template_that_knows_tools_is_given_them() -> None:
    knows = template("qwen3")
    for case in CASES.values():
        found = renderer(knows).render(Conversation(case.messages, case.tools, case.arguments))
        assert found.text == knows.render(case.messages, case.tools, case.arguments)
