"""What templates can say and do: what they can in Hugging Face's transformers, and no more."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from ovchat_server.chat.template import ChatTemplate
from ovchat_server.domain.chat import Message, Role
from ovchat_server.domain.errors import InvalidRequestError

USER = Message(Role.USER, ("Hi",))


def render(source: str, *messages: Message, **arguments: Any) -> str:
    return ChatTemplate(source, {}).render(messages or (USER,), (), arguments)


def test_blocks_take_their_lines_with_them() -> None:
    assert render("  {% if true %}\n a\n  {% endif %}\nb") == " a\nb"


def test_loops_have_break_and_continue() -> None:
    source = "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}"
    assert render(source + "{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "02"


def test_marks_for_training_are_passed_over() -> None:
    # LFM2.5's template has them.
    assert render("a{% generation %}b{{ messages[0].content }}{% endgeneration %}c") == "abHic"


def test_what_is_set_between_marks_for_training_is_not_set_after_them() -> None:
    source = "{% set a = 1 %}{% generation %}{% set a = 2 %}{{ a }}{% endgeneration %}{{ a }}"
    assert render(source) == "21"


def test_a_namespace_takes_any_name_that_means_nothing_to_python() -> None:
    source = "{% set ns = namespace({'b': 2}, a=1, self=3) %}{% set ns.c = 4 %}"
    assert render(source + "{{ ns.a }}{{ ns.b }}{{ ns.self }}{{ ns.c }}") == "1234"


def test_dictionaries_can_be_made() -> None:
    source = "{{ dict({'z': 1}, a=2) | tojson }}{{ dict.fromkeys('ab', 0) | tojson }}"
    assert render(source) == '{"z": 1, "a": 2}{"a": 0, "b": 0}'


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
    assert render("{{ messages[0].content }}", Message(Role.USER, ("<&>\"'",))) == "<&>\"'"


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
        "{{ dict.update(messages[0], {'role': 'system'}) }}",
        "{{ dict.__subclasses__() }}",
        "{% set ns = namespace(__class__=1) %}",
        "{% set ns = namespace() %}{% set ns.__html__ = 1 %}",
    ],
)
def test_the_sandbox_holds(source: str) -> None:
    messages = [USER, Message(Role.ASSISTANT, ("Yes",))]
    before = list(messages)
    with pytest.raises(InvalidRequestError):
        render(source, *messages)
    assert messages == before


def test_strftime_now_is_the_local_time_and_names_no_zone() -> None:
    before = datetime.now().astimezone().replace(tzinfo=None)
    shown = datetime.fromisoformat(render("{{ strftime_now('%Y-%m-%dT%H:%M:%S%z%Z') }}"))
    assert before.replace(microsecond=0) <= shown
    assert shown <= datetime.now().astimezone().replace(tzinfo=None)
