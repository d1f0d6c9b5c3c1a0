"""Calls as the models write them: after their documentation and their chat templates."""

from __future__ import annotations

import json

import pytest

from ovchat_server.domain.chat import Tool
from tests.unit.dialects.reading import Read, parser_of, read
from tests.unit.dialects.test_tool_dialects import DIALECTS

WEATHER = Tool(
    "get_weather",
    "The weather of a place.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "detailed": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "hours": {"$ref": "#/$defs/hours"},
            "zip": {"type": ["string", "integer"]},
        },
        "$defs": {"hours": {"type": "array", "items": {"type": "integer"}}},
    },
)
PARIS = ("get_weather", '{"city": "Paris"}')

TRANSCRIPTS = [
    (
        "hermes",
        (
            "Let me check.\n\n<tool_call>\n"
            '{"name": "get_weather", "arguments": {"city": "Paris"}}\n'
            '</tool_call>\n<tool_call>\n{"name": "get_weather", "arguments": {"days": 1.0}}\n'
            "</tool_call>\nDone. "
        ),
        Read("Let me check.Done. ", [PARIS, ("get_weather", '{"days": 1.0}')]),
    ),
    # Without the closing tag, which the models forget before the end and before the next.
    (
        "hermes",
        '<tool_call>\n{"name": "f", "arguments": {}}\n<tool_call>\n{"name": "g"}\n</tool_',
        Read("", [("f", "{}"), ("g", "{}")]),
    ),
    # Tags in a string are text of it.
    (
        "hermes",
        '<tool_call>{"arguments": {"x": "</tool_call>"}, "name": "f", "id": [1]}</tool_call>',
        Read("", [("f", '{"x": "</tool_call>"}')]),
    ),
    (
        "hermes",
        '<tool_call>\n{"name": "f", "arguments": { "z" : "\\u00e9", "a":1e2 } }\n</tool_call>',
        Read("", [("f", '{ "z" : "\\u00e9", "a":1e2 }')]),
    ),
    # Text in the place of a call is text; the call behind it is one.
    (
        "hermes",
        '<tool_call>I mean <tool_call>{"name": "f"}</tool_call>',
        Read("<tool_call>I mean", [("f", "{}")]),
    ),
    ("llama3", '{"name": "get_weather", "parameters": {"city": "Paris"}}', Read("", [PARIS])),
    (
        "llama3",
        (
            '<|python_tag|>{"type": "function", "name": "get_weather", "parameters": '
            '{"city": "Paris"}}; {"name": "f", "parameters": {}}'
        ),
        Read("", [PARIS, ("f", "{}")]),
    ),
    (
        "llama3",
        '<|python_tag|>brave_search.call(query="Paris weather", count=3)',
        Read("", [("brave_search", '{"query": "Paris weather", "count": 3}')]),
    ),
    # An answer in JSON is no call, and does not wait to become one.
    ("llama3", '{"city": "Paris", "days": 3}', Read('{"city": "Paris", "days": 3}', [])),
    (
        "mistral",
        '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "a1b2c3d4e"}]',
        Read("", [PARIS]),
    ),
    (
        "mistral",
        'I look.[TOOL_CALLS]get_weather{"city": "Paris"}[TOOL_CALLS]f{}',
        Read("I look.", [PARIS, ("f", "{}")]),
    ),
    (
        "devstral",
        'I look.[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Paris"}',
        Read("I look.", [PARIS]),
    ),
    (
        "qwen3_coder",
        (
            "I look.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\n12\n</parameter>\n"
            "<parameter=days>\n3\n</parameter>\n<parameter=detailed>\nTrue\n</parameter>\n"
            "<parameter=hours>\n[1, 2]\n</parameter>\n<parameter=zip>\n75001\n</parameter>\n"
            "</function>\n</tool_call>"
        ),
        Read(
            "I look.",
            [
                (
                    "get_weather",
                    '{"city": "12", "days": 3, "detailed": true, "hours": [1, 2], "zip": 75001}',
                )
            ],
        ),
    ),
    # Without the outer tag, several lines, and markup in the value.
    (
        "qwen3_coder",
        "<function=write>\n<parameter=text>\n\n if a < b:\n  <b>\n\n</parameter>\n</function>",
        Read("", [("write", '{"text": "\\n if a < b:\\n  <b>\\n"}')]),
    ),
    # A tool that is not known: types are guessed.
    (
        "qwen3_coder",
        (
            "<tool_call><function=g><parameter=a>None</parameter><parameter=b>x y</parameter>"
            "<parameter=c>{'k': \"it's\"}</parameter></function></tool_call>"
        ),
        Read("", [("g", '{"a": null, "b": "x y", "c": {"k": "it\'s"}}')]),
    ),
    # What does not fit its type is a string: the caller's own check says so best.
    (
        "qwen3_coder",
        "<function=get_weather><parameter=days>soon</parameter></function>",
        Read("", [("get_weather", '{"days": "soon"}')]),
    ),
    (
        "deepseek",
        (
            "I look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
            '```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function'
            "<｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        Read("I look.", [PARIS, ("f", "{}")]),
    ),
    (
        "deepseek",
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
            '{"city": "Paris"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
        ),
        Read("", [PARIS]),
    ),
    (
        "phi4",
        'functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]',
        Read("", [PARIS]),
    ),
    (
        "phi4",
        '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|/tool_call|>',
        Read("", [PARIS]),
    ),
    (
        "pythonic",
        "I look.\n[get_weather(city='Paris'), get_weather(days=3, detailed=None)]",
        Read("I look.", [PARIS, ("get_weather", '{"days": 3, "detailed": null}')]),
    ),
    (
        "pythonic",
        '<|python_start|>[get_weather(city="Paris")]<|python_end|>',
        Read("", [PARIS]),
    ),
    # A list is no call, nor is a link, nor what somebody else offers.
    ("pythonic", "[1, 2]\n[x](y)\n[f(a=1)]", Read("[1, 2]\n[x](y)\n[f(a=1)]", [])),
    (
        "lfm2",
        (
            '<|tool_call_start|>[get_weather(city=\'Paris\'), f(a={"k": [true, None]}, b="\\n\\d")]'
            "<|tool_call_end|>I look."
        ),
        Read(
            "I look.",
            [PARIS, ("f", '{"a": {"k": [true, null]}, "b": "\\n\\\\d"}')],
        ),
    ),
    (
        "gemma",
        (
            '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>'
            '<|tool_call>call:f{a:{k:[<|"|>x "y", z<|"|>,-1.5,true]},b:None,c:celsius}<tool_call|>'
        ),
        Read(
            "",
            [
                ("get_weather", '{"city": "Paris"}'),
                ("f", '{"a": {"k": ["x \\"y\\", z", -1.5, true]}, "b": null, "c": "celsius"}'),
            ],
        ),
    ),
    ("gemma", "<|tool_call>call:f{}call:g{}<tool_call|>", Read("", [("f", "{}"), ("g", "{}")])),
    (
        "gemma",
        "<start_function_call>call:get_weather{city:<escape>Paris<escape>}<end_function_call>",
        Read("", [PARIS]),
    ),
    (
        "granite",
        '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]',
        Read("", [PARIS]),
    ),
    (
        "granite",
        '<tool_call> [{"name": "get_weather", "arguments": {"city": "Paris"}}]',
        Read("", [PARIS]),
    ),
    (
        "glm",
        (
            "\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
            "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"
        ),
        Read("", [("get_weather", '{"city": "Paris", "days": 3}')]),
    ),
    # 4.7 has no line breaks.
    (
        "glm",
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>",
        Read("", [PARIS]),
    ),
    (
        "kimi",
        (
            "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
            '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|>'
            "<|tool_calls_section_end|>"
        ),
        Read("I look.", [PARIS]),
    ),
    (
        "minicpm",
        (
            '<function name="get_weather"><param name="city">Paris &amp; Rome</param>'
            '<param name="hours">[1]</param></function>\n'
            '<function name="f"><param name="x">\n<![CDATA[a < b\n]]>\n</param></function>'
        ),
        Read(
            "",
            [
                ("get_weather", '{"city": "Paris & Rome", "hours": [1]}'),
                ("f", '{"x": "a < b\\n"}'),
            ],
        ),
    ),
    (
        "gpt_oss",
        (
            "<|channel|>analysis<|message|>I should look.<|end|><|start|>assistant"
            "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
            "<|channel|>commentary to=functions.get_weather "
            '<|constrain|>json<|message|>{"city": "Paris"}<|call|>'
        ),
        Read("I look.", [PARIS], "I should look."),
    ),
    # The recipient before the channel, as in the history of the chat template.
    (
        "gpt_oss",
        ' to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris"}',
        Read("", [PARIS]),
    ),
    # On the wrong channel.
    (
        "gpt_oss",
        '<|channel|>analysis to=functions.get_weather<|message|>{"city": "Paris"}<|call|>',
        Read("", [PARIS]),
    ),
    (
        "gpt_oss",
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b"
            "<|end|><|start|>assistant<|channel|>commentary<|message|>c<|end|><|start|>assistant"
            "<|channel|>final<|message|>d<|return|>"
        ),
        Read("c\nd", [], "a\nb"),
    ),
    # Cut off: inside the reasoning, and inside a header.
    ("gpt_oss", "<|channel|>analysis<|message|>Hm, ", Read("", [], "Hm, ")),
    ("gpt_oss", "<|channel|>anal", Read("", [])),
    (
        "gpt_oss",
        "<|channel|>final<|message|>Yes.<|end|><|start|>assistant<|channel|>commentary to=funct",
        Read("Yes.", []),
    ),
    (
        "gpt_oss",
        "<|channel|>commentary to=functions.f<|message|>no JSON<|call|>",
        Read("<|channel|>commentary to=functions.f<|message|>no JSON<|call|>", []),
    ),
    # Without channels it is an answer.
    ("gpt_oss", "Yes.", Read("Yes.", [])),
    ("gpt_oss", "<|channel|>no header", Read("<|channel|>no header", [])),
]


@pytest.mark.parametrize(("name", "text", "expected"), TRANSCRIPTS)
def test_calls_are_found_in_what_the_models_write(name: str, text: str, expected: Read) -> None:
    tools = (WEATHER,)
    assert read(DIALECTS[name], [text], tools) == expected
    assert read(DIALECTS[name], text, tools) == expected
    if expected.calls:
        enforced = read(DIALECTS[name], text, tools, enforced=True)
        assert [(call, json.loads(arguments)) for call, arguments in enforced.calls] == [
            (call, json.loads(arguments)) for call, arguments in expected.calls
        ]


def test_a_bare_call_of_a_tool_that_nobody_offered_is_text() -> None:
    text = '{"name": "f", "parameters": {}}'
    assert read(DIALECTS["llama3"], [text], (WEATHER,)) == Read(text, [])
    assert read(DIALECTS["llama3"], [text]).calls == [("f", "{}")]


def test_text_is_handed_out_as_soon_as_it_cannot_be_a_call() -> None:
    parser = parser_of(DIALECTS["hermes"])
    assert parser.feed("a < b").content == "a < b"
    assert parser.feed(" \n").content == ""
    assert parser.feed("<tool").content == ""
    assert parser.feed("box>").content == " \n<toolbox>"
    assert parser.feed('<tool_call>{"a').content == ""
    assert parser.feed('": ,').content == '<tool_call>{"a": ,'
    assert parser_of(DIALECTS["llama3"]).feed('{"city"').content == ""
    assert parser_of(DIALECTS["llama3"]).feed('{"city": "Pa').content == '{"city": "Pa'
