"""Chat templates: found, compiled and rendered as Hugging Face does, and held in their sandbox."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.api.chat import Message, Role, Tool, ToolCall
from ovchat_server.api.errors import InvalidRequestError
from ovchat_server.chat.template import ChatTemplate, ChatTemplateError, load_chat_template

if TYPE_CHECKING:
    from pathlib import Path

USER = Message(Role.USER, "Hi")


def render(source: str, *messages: Message, tools: tuple[Tool, ...] = (), **arguments: Any) -> str:
    template = ChatTemplate(source, {"bos_token": "<s>", "eos_token": "</s>"})
    return template.render(messages or (USER,), tools, arguments)


def refusal(source: str, *messages: Message) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        render(source, *messages)
    assert caught.value.param == "messages"
    return caught.value.message


SOURCES = ("chat_template.jinja", "chat_template.json", "processor_config.json")


@pytest.mark.parametrize("first", range(4))
def test_a_template_is_looked_for_in_hugging_faces_order(tmp_path: Path, first: int) -> None:
    names = [*SOURCES, "tokenizer_config.json"]
    for name in names[first:]:
        text = name if name.endswith(".jinja") else json.dumps({"chat_template": name})
        (tmp_path / name).write_text(text)
    assert load_chat_template(tmp_path).render([USER]) == names[first]


def test_of_several_named_templates_the_default_is_taken(tmp_path: Path) -> None:
    named = [{"name": "rag", "template": "a"}, {"name": "default", "template": "b"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    assert load_chat_template(tmp_path).render([USER]) == "b"


def test_special_tokens_come_from_the_tokenizers_configuration(tmp_path: Path) -> None:
    config = {
        "chat_template": "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}",
        "bos_token": {"content": "<s>", "lstrip": False},
        "eos_token": "</s>",
        "pad_token": None,
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    template = load_chat_template(tmp_path)
    assert template.render([USER]) == "<s></s>False"
    assert template.end_token == "</s>"


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({}, "there is no chat template"),
        ({"tokenizer_config.json": "{}"}, "there is no chat template"),
        ({"tokenizer_config.json": "{"}, "tokenizer_config.json is not JSON"),
        ({"chat_template.jinja": "{% if %}"}, "does not compile"),
        ({"tokenizer_config.json": '{"chat_template": [{"name": "rag"}]}'}, "no chat template"),
    ],
)
def test_a_folder_without_a_usable_template_is_told(
    tmp_path: Path, files: dict[str, str], complaint: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ChatTemplateError, match=complaint):
        load_chat_template(tmp_path)


def test_blocks_take_their_lines_with_them() -> None:
    assert render("  {% if true %}\n a\n  {% endif %}\nb") == " a\nb"


def test_loops_have_break_and_continue() -> None:
    source = "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}"
    assert render(source + "{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "02"


def test_marks_for_training_are_passed_over() -> None:
    # SmolLM3's template has them.
    assert render("a{% generation %}b{{ messages[0].content }}{% endgeneration %}c") == "abHic"


def test_tojson_writes_json_and_not_html() -> None:
    value = {"z": "<b>&'\"é😀</b>", "a": [1, 1.5, True, None]}
    assert render("{{ value | tojson }}", value=value) == json.dumps(value, ensure_ascii=False)


def test_tojson_keeps_the_order_of_keys_unless_asked() -> None:
    value = {"z": 1, "a": {"y": 1, "b": 2}}
    assert render("{{ value | tojson }}", value=value) == '{"z": 1, "a": {"y": 1, "b": 2}}'
    assert render("{{ value | tojson(sort_keys=true) }}", value=value).startswith('{"a"')
    assert render("{{ value | tojson(indent=2) }}", value=value) == json.dumps(value, indent=2)
    assert render("{{ ['é'] | tojson(ensure_ascii=true) }}") == '["\\u00e9"]'
    assert render("{{ [1, 2] | tojson(separators=(',', ':')) }}") == "[1,2]"


def test_nothing_is_escaped() -> None:
    assert render("{{ messages[0].content }}", Message(Role.USER, "<&>\"'")) == "<&>\"'"


def test_a_template_may_refuse_in_its_own_words() -> None:
    message = refusal("{{ raise_exception('Roles must alternate!') }}")
    assert message.endswith(": Roles must alternate!")


def test_what_a_template_says_is_echoed_short() -> None:
    source = "{{ raise_exception(messages[0].content) }}"
    assert len(refusal(source, Message(Role.USER, "x" * 10_000))) < 300


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__class__.__mro__ }}",
        "{{ raise_exception.__globals__.keys() }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ messages.pop() }}",
        "{{ messages[0].update({'a': 1}) }}",
        "{{ messages[0].clear() }}",
        "{{ ('%s' | attr('__class__')).__mro__ }}",
        "{{ '{0.__class__.__mro__}'.format('') }}",
        "{{ range(10**9) | list }}",
    ],
)
def test_the_sandbox_holds(source: str) -> None:
    messages = [USER, Message(Role.ASSISTANT, "Yes")]
    before = list(messages)
    with pytest.raises(InvalidRequestError):
        render(source, *messages)
    assert messages == before


@pytest.mark.parametrize(
    "source", ["{{ 1 / 0 }}", "{{ messages[0].content + 1 }}", "{{ nothing.at.all }}", "{{ f() }}"]
)
def test_a_template_that_fails_refuses_the_conversation(source: str) -> None:
    assert refusal(source).startswith("messages cannot be put into the model's chat template: ")


def test_strftime_now_is_the_local_time() -> None:
    before = datetime.now().astimezone()
    shown = datetime.fromisoformat(render("{{ strftime_now('%Y-%m-%dT%H:%M:%S%z') }}"))
    assert before.replace(microsecond=0) <= shown <= datetime.now().astimezone()


@pytest.mark.parametrize(
    ("source", "role"),
    [
        ("{{ messages[0].role }}", "system"),
        ("{{ messages[0].role }}{# knows developer #}", "developer"),
    ],
)
def test_a_developer_is_the_system_to_templates_that_do_not_know_one(
    source: str, role: str
) -> None:
    assert render(source, Message(Role.DEVELOPER, "Be brief.")) == role


def test_a_conversation_reaches_the_template_as_hugging_face_gives_it() -> None:
    messages = (
        Message(Role.SYSTEM, "S"),
        Message(Role.USER, "Hi", name="Ann"),
        Message(
            Role.ASSISTANT,
            None,
            tool_calls=(ToolCall("c1", "f", '{"z": 1, "a": "é"}'),),
            reasoning_content="Hm",
        ),
        Message(Role.TOOL, "42", tool_call_id="c1"),
    )
    assert json.loads(render("{{ messages | tojson }}", *messages)) == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Hi", "name": "Ann"},
        {
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


@pytest.mark.parametrize("arguments", ["", "f(1)", "[1]", '"x"', '{"a": "\\ud800"}', "[" * 100_000])
def test_arguments_that_are_no_object_stay_text(arguments: str) -> None:
    source = "{{ messages[0].tool_calls[0].function.arguments }}"
    message = Message(Role.ASSISTANT, None, tool_calls=(ToolCall("c", "f", arguments),))
    assert render(source, message) == arguments


def test_arguments_are_an_object_to_iterate_over_in_order() -> None:
    source = (
        "{% for k, v in messages[0].tool_calls[0].function.arguments | items %}"
        "{{ k }}={{ v }};{% endfor %}"
    )
    call = ToolCall("c", "f", '{"z": 1, "a": 2}')
    assert render(source, Message(Role.ASSISTANT, None, tool_calls=(call,))) == "z=1;a=2;"


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


def test_without_tools_a_template_sees_none() -> None:
    assert render("{{ tools is none }} {{ documents is none }}") == "True True"


def test_arguments_are_variables_and_cannot_replace_the_conversation() -> None:
    source = "{{ x }} {{ messages | length }} {{ add_generation_prompt }} {{ bos_token }}"
    forged = {"messages": [], "add_generation_prompt": False, "x": 1, "tools": "t"}
    template = ChatTemplate(source, {"bos_token": "<s>"})
    assert template.render([USER], (), forged) == "1 1 True <s>"


@pytest.mark.parametrize(
    ("source", "thinks", "calls"),
    [
        ("", False, False),
        ("<think>", True, False),
        ("a</think>", True, False),
        ("<tool_call>", False, True),
    ],
)
def test_what_a_model_can_do_shows_in_its_template(source: str, thinks: bool, calls: bool) -> None:  # noqa: FBT001
    template = ChatTemplate(source, {})
    assert (template.thinks, template.calls_tools) == (thinks, calls)
