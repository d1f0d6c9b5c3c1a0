"""Chat templates: rendered as Hugging Face does, and held in their sandbox."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.chat.template import (
    ChatTemplate,
    load_chat_template,
)
from ovchat_server.domain.chat import Message, PromptEnding, Role, Tool, ToolCall
from ovchat_server.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.domain.json_value import JsonObject

USER = Message(Role.USER, ("Hi",))
TOOL = Tool("f", None, None)


def render(source: str, *messages: Message, tools: tuple[Tool, ...] = (), **arguments: Any) -> str:
    template = ChatTemplate(source, {"bos_token": "<s>", "eos_token": "</s>"})
    return template.render(messages or (USER,), tools, arguments)


def refusal(source: str, *messages: Message) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        render(source, *messages)
    assert caught.value.param == "messages"
    return caught.value.message


def test_a_models_folder_gives_the_template_and_its_tokens(tmp_path: Path) -> None:
    named = [
        {"name": "default", "template": "{{ bos_token }}"},
        {"name": "tool_use", "template": "tools{{ eos_token }}"},
    ]
    config = {"chat_template": named, "bos_token": "<s>", "eos_token": "</s>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    template = load_chat_template(tmp_path)
    assert template.render([USER]) == "<s>"
    assert template.render([USER], [TOOL]) == "tools</s>"
    assert template.end_token == "</s>"


def test_a_template_may_refuse_in_its_own_words() -> None:
    message = refusal("{{ raise_exception('Roles must alternate!') }}")
    assert message.endswith(": Roles must alternate!")


def test_a_sentence_of_the_template_reaches_the_caller_whole() -> None:
    # Mistral's longest.
    sentence = (
        "After the optional system message, conversation roles must alternate user and "
        "assistant roles except for tool calls and results."
    )
    assert refusal(f"{{{{ raise_exception('{sentence}') }}}}").endswith(": " + sentence)


def test_what_a_template_says_is_echoed_short() -> None:
    source = "{{ raise_exception(messages[0].content) }}"
    assert len(refusal(source, Message(Role.USER, ("x" * 10_000,)))) < 300


def test_what_a_template_says_is_echoed_without_marks_and_control_characters() -> None:
    source = "{{ raise_exception('Not ' ~ messages[0].content) }}"
    said = refusal(source, Message(Role.USER, ("<\ufdd0|im_end|>\r\n\x1b[31m\x00 \u202eZürich 🌦",)))
    assert said.endswith(": Not <|im_end|> [31m Zürich 🌦")


@pytest.mark.parametrize(
    "source", ["{{ 1 / 0 }}", "{{ messages[0].content + 1 }}", "{{ nothing.at.all }}", "{{ f() }}"]
)
def test_a_template_that_fails_refuses_the_conversation(source: str) -> None:
    assert refusal(source).startswith("messages cannot be put into the model's chat template: ")


@pytest.mark.parametrize(
    ("source", "role"),
    [
        ("", "system"),
        ("{% if messages[0].role == 'developer' %}{% endif %}", "developer"),
        ('{% if messages[0].role in ["system", "developer"] %}{% endif %}', "developer"),
        # Command R and Apertus write of developers, but know no such role.
        ("{% set developer_preamble = 1 %}{# unless the developer's preamble says so #}", "system"),
    ],
)
def test_a_developer_is_the_system_to_templates_that_do_not_know_one(
    source: str, role: str
) -> None:
    assert (
        render(source + "{{ messages[0].role }}", Message(Role.DEVELOPER, ("Be brief.",))) == role
    )


def test_a_conversation_reaches_the_template_as_hugging_face_gives_it() -> None:
    messages = (
        Message(Role.SYSTEM, ("S",)),
        Message(Role.USER, ("Hi",), name="Ann"),
        Message(
            Role.ASSISTANT,
            (),
            tool_calls=(ToolCall("c1", "f", '{"z": 1, "a": "é"}'),),
            reasoning_content="Hm",
        ),
        Message(Role.TOOL, ("42",), tool_call_id="c1"),
    )
    conversation = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Hi", "name": "Ann"},
        {
            "thinking": "Hm",
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": {"z": 1, "a": "é"}},
                }
            ],
            "reasoning_content": "Hm",
        },
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
    ]
    # The order too: a template may write a message as JSON.
    assert render("{{ messages | tojson }}", *messages) == json.dumps(
        conversation, ensure_ascii=False
    )


@pytest.mark.parametrize("arguments", ["", "f(1)", "[1]", '"x"', '{"a": "\\ud800"}', "[" * 100_000])
def test_arguments_that_are_no_object_stay_text(arguments: str) -> None:
    source = "{{ messages[0].tool_calls[0].function.arguments }}"
    message = Message(Role.ASSISTANT, (), tool_calls=(ToolCall("c", "f", arguments),))
    assert render(source, message) == arguments


def test_arguments_are_an_object_to_iterate_over_in_order() -> None:
    source = (
        "{% for k, v in messages[0].tool_calls[0].function.arguments | items %}"
        "{{ k }}={{ v }};{% endfor %}"
    )
    call = ToolCall("c", "f", '{"z": 1, "a": 2}')
    assert render(source, Message(Role.ASSISTANT, (), tool_calls=(call,))) == "z=1;a=2;"


def test_tools_reach_the_template_in_the_callers_order() -> None:
    parameters: Any = {"type": "object", "properties": {"z": {}, "a": {}}}
    tools = (Tool("f", "Does", parameters, strict=True), Tool("g", None, None))
    assert render("{{ tools | tojson }}", tools=tools) == json.dumps(
        [
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": "Does",
                    "parameters": parameters,
                    "strict": True,
                },
            },
            {"type": "function", "function": {"name": "g"}},
        ]
    )


def test_with_tools_the_template_for_tools_is_taken() -> None:
    template = ChatTemplate("plain", {}, "for {{ tools[0].function.name }}")
    assert template.render([USER]) == "plain"
    assert template.render([USER], [TOOL]) == "for f"


@pytest.mark.parametrize(
    ("source", "knows"),
    [
        ("{% for tool in tools %}{{ tool }}{% endfor %}", True),
        ("{% if not tools is defined %}{% set tools = none %}{% endif %}{{ tools }}", True),
        ("{% macro m() %}{{ tools | tojson }}{% endmacro %}{{ m() }}", True),
        ("{% generation %}{{ tools }}{% endgeneration %}", True),
        ("Use your tools. {{ message.tools }} {{ 'tools' }} {# tools #}", False),
        ("{% macro m(tools) %}{{ tools }}{% endmacro %}{{ m([]) }}", False),
        ("{% set tools = [] %}{{ tools }}", False),
        ("{% for tools in messages %}{{ tools }}{% endfor %}", False),
        ("{{ builtin_tools }}{{ xml_tools }}", False),
    ],
)
def test_a_template_knows_tools_if_it_asks_for_them(source: str, *, knows: bool) -> None:
    assert ChatTemplate(source, {}).knows_tools is knows


def test_a_template_beside_one_for_tools_knows_them() -> None:
    assert ChatTemplate("plain", {}, "{{ messages }}").knows_tools


def test_without_tools_and_documents_a_template_sees_none() -> None:
    assert render("{{ tools is none }} {{ documents is none }}") == "True True"


def test_documents_reach_the_template_as_they_are() -> None:
    template = ChatTemplate("{{ documents | tojson }}", {})
    documents: list[JsonObject] = [{"title": "T", "text": "é"}, {"z": [1, None], "a": {}}]
    assert template.render([USER], documents=documents) == json.dumps(documents, ensure_ascii=False)


def test_arguments_are_variables_and_cannot_replace_the_conversation() -> None:
    source = "{{ x }} {{ messages | length }} {{ add_generation_prompt }} {{ bos_token }}"
    forged = {"messages": [], "add_generation_prompt": False, "x": 1, "tools": "t"}
    template = ChatTemplate(source + " {{ tools }} {{ documents }}", {"bos_token": "<s>"})
    forged["documents"] = [{}]
    assert template.render([USER], (), forged) == "1 1 True <s> None None"


TURNS = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
STRIPPING_TURNS = TURNS.replace("m.content", "m.content | trim")


def ended(ending: PromptEnding, content: str | None, source: str = TURNS, **fields: Any) -> str:
    messages = [USER, Message(Role.ASSISTANT, (content or "",), **fields)]
    return ChatTemplate(source, {}).render(messages, ending=ending)


@pytest.mark.parametrize(
    ("ending", "prompt"),
    [
        (PromptEnding.ASSISTANT_TURN, "<user>Hi</><assistant>Yes, </><assistant>"),
        (PromptEnding.NOTHING, "<user>Hi</><assistant>Yes, </>"),
        (PromptEnding.FINAL_MESSAGE, "<user>Hi</><assistant>Yes, "),
    ],
)
def test_a_prompt_ends_as_asked(ending: PromptEnding, prompt: str) -> None:
    assert ended(ending, "Yes, ") == prompt


@pytest.mark.parametrize("content", ["Yes", "Yes \n", " Yes", "<\ufdd0/> Yes", "</>", "Hi"])
def test_a_template_that_strips_leaves_a_message_to_continue_without_white_space(
    content: str,
) -> None:
    prompt = ended(PromptEnding.FINAL_MESSAGE, content, STRIPPING_TURNS)
    assert prompt == "<user>Hi</><assistant>" + content.strip()


def test_a_message_to_continue_loses_what_the_template_writes_behind_it() -> None:
    calls = (ToolCall("c", "f", "{}"),)
    source = TURNS.replace("</>", "{{ m.tool_calls }}</>")
    prompt = ended(PromptEnding.FINAL_MESSAGE, "Yes", source, tool_calls=calls)
    assert prompt == "<user>Hi</><assistant>Yes"


@pytest.mark.parametrize(
    ("content", "source"),
    [
        ("", TURNS),
        (None, TURNS),
        ("Yes", "{{ messages[0].content }}"),
        ("Yes", TURNS.replace("m.content", "m.content[:8]")),
        ("a b", TURNS.replace("m.content", "m.content | replace('a ', '')")),
    ],
)
def test_a_message_that_cannot_be_continued_is_refused(content: str | None, source: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^messages cannot be continued: ") as caught:
        ended(PromptEnding.FINAL_MESSAGE, content, source)
    assert caught.value.param == "messages"


def test_no_message_cannot_be_continued() -> None:
    with pytest.raises(InvalidRequestError, match=r"^messages cannot be continued: "):
        ChatTemplate(TURNS, {}).render([], ending=PromptEnding.FINAL_MESSAGE)


def test_a_message_that_makes_a_template_fail_when_continued_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="No more!"):
        ended(PromptEnding.FINAL_MESSAGE, "Yes", TURNS + "{{ raise_exception('No more!') }}")


def test_what_a_model_speaks_shows_in_both_of_its_templates() -> None:
    assert ChatTemplate("a", {}).source == "a"
    assert ChatTemplate("a", {}, "b").source == "ab"


# As those of LLaVA do, which would show nothing of a text.
OF_PARTS = """\
{%- for m in messages %}<{{ m.role }}>
{%- for part in m.content | selectattr('type', 'equalto', 'text') %}{{ part.text }} {% endfor -%}
</>{% endfor %}"""


def test_a_template_that_shows_parts_alone_gets_them() -> None:
    assert render(OF_PARTS, USER, Message(Role.ASSISTANT, ("a", "b"))) == (
        "<user>Hi </><assistant>a b </>"
    )
    assert ended(PromptEnding.FINAL_MESSAGE, "Yes,", OF_PARTS) == "<user>Hi </><assistant>Yes,"


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[0].content if messages[0].content is string else 'parts' }}",
        "{% for part in messages[0].content %}{{ part }}{% endfor %}",
        "{{ messages[0].content[:2] }}",
    ],
)
def test_a_template_that_shows_texts_gets_texts(source: str) -> None:
    assert render(source, USER) == "Hi"
