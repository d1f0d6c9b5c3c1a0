"""How the models of each dialect write calls: what the shared suite feeds to its parser."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from ovchat_server.domain.chat import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
)


def nested(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=5,
    )


NAMES = st.from_regex(r"f[A-Za-z0-9_.-]{0,8}", fullmatch=True)
KEYS = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)
JSON = nested(LEAVES, st.text(max_size=3))


@dataclass(frozen=True)
class Written:
    """A call: its arguments, and their JSON as a model that writes JSON wrote it."""

    name: str
    arguments: dict[str, Any]
    text: str


@dataclass(frozen=True)
class Writer:
    """How a dialect's models write.

    Attributes:
        write: Calls that follow each other.
        damaged: What looks like a call, and is none.
        keys: Names of arguments that it can write.
        values: Arguments that it can write.
        say: How text stands beside calls.
        keeps_json: The arguments are the JSON that the model wrote.
    """

    write: Callable[[Sequence[Written]], str]
    damaged: tuple[str, ...]
    keys: st.SearchStrategy[str] = KEYS
    values: st.SearchStrategy[Any] = JSON
    say: Callable[[str], str] = str
    keeps_json: bool = True

    def calls(self, most: int = 3) -> st.SearchStrategy[list[Written]]:
        return st.lists(self.call(), min_size=1, max_size=most)

    @st.composite
    @staticmethod
    def _call(draw: st.DrawFn, self: Writer) -> Written:
        arguments = draw(st.dictionaries(self.keys, self.values, max_size=3))
        style = draw(
            st.sampled_from(
                [{}, {"ensure_ascii": False}, {"indent": 1}, {"separators": (",", ":")}]
            )
        )
        return Written(draw(NAMES), arguments, json.dumps(arguments, **style))

    def call(self) -> st.SearchStrategy[Written]:
        return self._call(self)


def schema_of(value: Any) -> dict[str, Any]:
    for kind, name in (
        (bool, "boolean"),
        (str, "string"),
        (int, "integer"),
        (float, "number"),
        (list, "array"),
        (dict, "object"),
    ):
        if isinstance(value, kind):
            return {"type": name}
    return {"type": "null"}


def tools_for(calls: Sequence[Written]) -> tuple[Tool, ...]:
    """Of each name one tool, with the types of its first call."""
    first = {call.name: call for call in reversed(calls)}
    return tuple(
        Tool(
            name,
            None,
            {"properties": {key: schema_of(value) for key, value in call.arguments.items()}},
        )
        for name, call in first.items()
    )


def lines(*parts: str) -> str:
    return "\n".join(parts)


def named(call: Written, key: str = "arguments") -> str:
    return f'{{"name": {json.dumps(call.name)}, "{key}": {call.text}}}'


def json_list(calls: Sequence[Written]) -> str:
    return "[" + ", ".join(map(named, calls)) + "]"


def hermes(calls: Sequence[Written]) -> str:
    return lines(*(f"<tool_call>\n{named(call)}\n</tool_call>" for call in calls))


def llama3(calls: Sequence[Written]) -> str:
    return "\n" + "; ".join(named(call, "parameters") for call in calls)


def devstral(calls: Sequence[Written]) -> str:
    return "".join(f"[TOOL_CALLS]{call.name}[ARGS]{call.text}" for call in calls)


def deepseek(calls: Sequence[Written]) -> str:
    written = (
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{call.name}\n```json\n{call.text}\n```"
        "<｜tool▁call▁end｜>"
        for call in calls
    )
    return f"<｜tool▁calls▁begin｜>{lines(*written)}<｜tool▁calls▁end｜>"


def kimi(calls: Sequence[Written]) -> str:
    written = (
        f"<|tool_call_begin|>functions.{call.name}:{number}<|tool_call_argument_begin|>"
        f"{call.text}<|tool_call_end|>"
        for number, call in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{''.join(written)}<|tool_calls_section_end|>"


def harmony(calls: Sequence[Written]) -> str:
    return "".join(
        f"<|start|>assistant<|channel|>commentary to=functions.{call.name} <|constrain|>json"
        f"<|message|>{call.text}<|call|>"
        for call in calls
    )


def harmony_says(text: str) -> str:
    return f"<|start|>assistant<|channel|>final<|message|>{text}<|end|>" if text else ""


def python_calls(calls: Sequence[Written]) -> str:
    written = (
        f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"
        for call in calls
    )
    return f"[{', '.join(written)}]"


def as_text(value: Any) -> str:
    """As the templates print it: Python's booleans, JSON's lists."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


def qwen3_coder(calls: Sequence[Written]) -> str:
    return lines(
        *(
            lines(
                f"<tool_call>\n<function={call.name}>",
                *(
                    f"<parameter={key}>\n{as_text(value)}\n</parameter>"
                    for key, value in call.arguments.items()
                ),
                "</function>\n</tool_call>",
            )
            for call in calls
        )
    )


def glm(calls: Sequence[Written]) -> str:
    return lines(
        *(
            lines(
                f"<tool_call>{call.name}",
                *(
                    f"<arg_key>{key}</arg_key>\n<arg_value>"
                    f"{value if isinstance(value, str) else json.dumps(value)}</arg_value>"
                    for key, value in call.arguments.items()
                ),
                "</tool_call>",
            )
            for call in calls
        )
    )


def minicpm(calls: Sequence[Written]) -> str:
    def value(text: str) -> str:
        marked = any(char in text for char in "<&\n")
        return f"<![CDATA[{text}]]>" if marked else text

    return lines(
        *(
            f'<function name="{call.name}">'
            + "".join(
                f'<param name="{key}">{value(as_text(argument))}</param>'
                for key, argument in call.arguments.items()
            )
            + "</function>"
            for call in calls
        )
    )


def gemma_value(value: Any) -> str:
    match value:
        case str():
            return f'<|"|>{value}<|"|>'
        case bool():
            return "true" if value else "false"
        case dict():
            return "{" + ",".join(f"{key}:{gemma_value(v)}" for key, v in value.items()) + "}"
        case list():
            return "[" + ",".join(map(gemma_value, value)) + "]"
    return str(value)


def gemma(calls: Sequence[Written]) -> str:
    return "".join(
        f"<|tool_call>call:{call.name}{gemma_value(call.arguments)}<tool_call|>" for call in calls
    )


# Values are told apart by their schema, in which a string may be any.
TYPED = nested(LEAVES, KEYS)

WRITERS: dict[str, Writer] = {
    "hermes": Writer(
        hermes,
        (
            "<tool_call>f(1)</tool_call>",
            '<tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>',
            '<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>',
            '<tool_call>{"name": "f", "arguments": {"a": "\\ud800"}}</tool_call>',
            '<tool_call>{"name": "f", "arguments": {"a": 1e999}}</tool_call>',
            '<tool_call>{"name": "f", "arguments": []}</tool_call>',
            '<tool_call>{"name": "f", "arguments": "{}"}</tool_call>',
            '<tool_call>{"name": 1, "arguments": {}}</tool_call>',
            '<tool_call>{"name": "", "arguments": {}}</tool_call>',
            '<tool_call>{"name": "\\udfff", "arguments": {}}</tool_call>',
            '<tool_call>{"name": "f", "name": "g"}</tool_call>',
            '<tool_call>{"arguments": {}}</tool_call>',
            '<tool_call>{"name": "f", "arguments": {}} and more</tool_call>',
            '<tool_call>{"name": "f", "arguments": {"a": ' + "[" * 1000 + "}}</tool_call>",
            '<tool_call>{"name": "f", "arguments": {"a": ' + "1" * 5000 + "}}</tool_call>",
            "<tool_call></tool_call>",
        ),
    ),
    "llama3": Writer(
        llama3,
        (
            '{"name": "f"}',
            '{"name": "unknown", "parameters": {}}',
            '{"name": "f", "parameters": {}, "age": 3}',
            "<|python_tag|>print(1)",
            "<|python_tag|>f(a=1)",
            'x {"name": "f", "parameters": {}}',
        ),
    ),
    "mistral": Writer(
        lambda calls: "[TOOL_CALLS]" + json_list(calls),
        ("[TOOL_CALLS]", "[TOOL_CALLS] f", '[TOOL_CALLS][{"name": "f", "arguments": 1}]'),
    ),
    "devstral": Writer(
        devstral, ("[TOOL_CALLS]f[ARGS]", "[TOOL_CALLS]f[ARGS]no", "[TOOL_CALLS]f[CALL_ID]x{}")
    ),
    "qwen3_coder": Writer(
        qwen3_coder,
        (
            "<tool_call><function=f>1</function></tool_call>",
            '<tool_call>{"name": "f", "arguments": {}}</tool_call>',
            "<function=f><parameter=a>1</parameter><parameter=a>2</parameter></function>",
            "<function=></function>",
        ),
        values=TYPED,
        keeps_json=False,
    ),
    "gpt_oss": Writer(harmony, (), say=harmony_says),
    "deepseek": Writer(
        deepseek,
        (
            "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>f<｜tool▁sep｜>no<｜tool▁call▁end｜>",
        ),
    ),
    "phi4": Writer(lambda calls: "functools" + json_list(calls), ("functools[]", "functools[1]")),
    "pythonic": Writer(
        lambda calls: "\n" + python_calls(calls),
        ("[f(1)]", "[f]", "[]", "[g(a=1)]", "x [f()]", "[f(a=1, a=2)]", "[f(a=x)]", "[f(a={1})]"),
        keeps_json=False,
    ),
    "lfm2": Writer(
        lambda calls: f"<|tool_call_start|>{python_calls(calls)}<|tool_call_end|>",
        ("<|tool_call_start|>[f(1)]<|tool_call_end|>", "<|tool_call_start|>f()<|tool_call_end|>"),
        keeps_json=False,
    ),
    "gemma": Writer(
        gemma,
        ("<|tool_call>f{}<tool_call|>", "<|tool_call>call:f{a:}<tool_call|>", "<|tool_call>call:f"),
        values=nested(LEAVES, KEYS),
        keeps_json=False,
    ),
    "granite": Writer(
        lambda calls: "<|tool_call|>" + json_list(calls),
        ("<|tool_call|>{}", '<tool_call>{"name": "f", "arguments": {}}</tool_call>'),
    ),
    "glm": Writer(
        glm,
        (
            "<tool_call>f</tool_call",
            "<tool_call>some words</tool_call>",
            "<tool_call>f\n<arg_key>a</arg_key>\n</tool_call>",
        ),
        values=TYPED,
        keeps_json=False,
    ),
    "kimi": Writer(
        kimi,
        (
            "<|tool_calls_section_begin|><|tool_calls_section_end|>",
            "<|tool_call_begin|>f:0<|tool_call_argument_begin|>no<|tool_call_end|>",
        ),
    ),
    "minicpm": Writer(
        minicpm,
        ('<function name="f"', '<function name="f">1</function>', '<function name=""></function>'),
        values=TYPED,
        keeps_json=False,
    ),
}
