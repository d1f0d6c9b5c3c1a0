"""How arguments that are written one by one are described, and read by the tool's schema."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ovchat_server.api.chat import Tool
from ovchat_server.chat.dialects.call_form import CalledTool
from ovchat_server.chat.dialects.ebnf import any_of, characters, integers, literal
from ovchat_server.chat.dialects.json_patterns import PatternError
from ovchat_server.chat.dialects.members import Keys, members
from ovchat_server.chat.dialects.schema_leaves import leaves
from ovchat_server.chat.dialects.string_formats import FORMAT_PATTERNS
from ovchat_server.chat.dialects.string_patterns import pattern
from ovchat_server.chat.dialects.values import types_of
from tests.unit.dialects.reading import Read, read
from tests.unit.dialects.test_tool_dialects import DIALECTS

FAMILIES = ("qwen3_coder", "glm", "minicpm", "gemma", "pythonic", "lfm2")
KEYS = Keys(literal, pattern, "free", '", "')


def start(name: str, schema: dict[str, Any]) -> str:
    """What the grammar of a call's arguments begins with."""
    form = DIALECTS[name].form
    assert form is not None
    content = form.call(CalledTool("f", schema, {}))["content"]
    assert isinstance(content, dict)
    return str(content["grammar"]).split("\n", maxsplit=1)[0]


def as_regex(expression: str) -> re.Pattern[str]:
    """An expression of members whose values are nothing, as Python has it."""
    return re.compile(re.sub(r" |other\d+|\"", "", expression.replace('", "', ",")))


@pytest.mark.parametrize("required", [[], ["a"], ["b"], ["c"], ["a", "c"], ["a", "b", "c"]])
def test_optional_members_may_be_left_out_wherever_they_stand(required: list[str]) -> None:
    schema: Any = {"properties": {"a": {}, "b": {}, "c": {}}, "required": required}
    regex = as_regex(members(schema, KEYS, lambda *_: ""))
    for number in range(8):
        names = [name for bit, name in enumerate("abc") if number >> bit & 1]
        fits = {*required} <= {*names}
        assert bool(regex.fullmatch(",".join(names))) == fits
    for text in ("b,a", "a,", ",a", "a,,b", "a,a"):
        assert not regex.fullmatch(text)


def test_members_grow_no_faster_than_they_must() -> None:
    def length(count: int) -> int:
        names = {f"{number:04}": {} for number in range(count)}
        return len(members({"properties": names}, KEYS, lambda *_: ""))

    assert length(256) < length(128) * 2.5


@pytest.mark.parametrize(
    ("bounds", "texts"),
    [
        ({"minProperties": 2}, {"a,b", "a,b,c"}),
        ({"maxProperties": 1}, {"", "a"}),
        ({"minProperties": 1, "maxProperties": 1}, {"a"}),
    ],
)
def test_as_many_members_as_may_be(bounds: dict[str, Any], texts: set[str]) -> None:
    regex = as_regex(
        members({"properties": {"a": {}, "b": {}, "c": {}}} | bounds, KEYS, lambda *_: "")
    )
    every = ["", "a", "b", "c", "a,b", "a,c", "b,c", "a,b,c"]
    assert {text for text in every if regex.fullmatch(text)} == texts


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (-3, 20), (5, 99), (17, 17), (-120, -7), (95, 1203), (-10, 10**6)]
)
def test_integers_are_those_between_the_bounds(low: int, high: int) -> None:
    regex = as_regex(integers(low, high))
    for value in {*range(-130, 1300), low, low - 1, high, high + 1}:
        assert bool(regex.fullmatch(str(value))) == (low <= value <= high)


def test_alternatives_that_begin_alike_end_in_different_rules() -> None:
    assert any_of(['"a"', '"b"']) == '("a" | "b")'
    assert any_of(['"a"', '"ab"']) == '("a" other0 | "ab" other1)'
    assert pattern("a|ab") == '( "a" other0 | "a" "b" other1 )'


def test_a_text_is_broken_where_the_compiler_would_misread_it() -> None:
    assert literal('ß0 "\\é\nb') == '"ß" "0 \\"\\\\é\\x0a" "b"'


def test_patterns_leave_out_what_would_end_the_text() -> None:
    assert "\\x3c" not in pattern("^[^a]$", "<")
    assert "\\x3c" not in pattern("^[;-=]$", "<")
    assert pattern("^<$", "<", {"<": "&lt;"}) == '( "&lt;" )'
    with pytest.raises(PatternError):
        pattern("^<$", "<")


def test_characters_are_in_ranges_of_whole_bytes() -> None:
    # Behind others the compiler lets an answer go on as it likes.
    assert characters([(0xC000, 0xD7FF)]) == r"[\U0000c000-\U0000cfff\U0000d000-\U0000d7ff]"
    assert characters([(0xDF, 0xDF)], negated=True).startswith(
        r"[\x00-\x7f\U00000080-\U000000bf\U000000c0-\U000000de\U000000e0-"
    )


@pytest.mark.parametrize("regex", ["(?=a)b", "(?<x>a)", "[a-", r"\bx", "a)", "(a"])
def test_patterns_that_cannot_be_written_are_refused(regex: str) -> None:
    with pytest.raises(PatternError):
        pattern(regex)


@pytest.mark.parametrize("name", FORMAT_PATTERNS)
def test_every_format_can_be_written(name: str) -> None:
    assert pattern(FORMAT_PATTERNS[name], "<&", {"<": "&lt;", "&": "&amp;"})


def test_a_schema_is_taken_apart_into_its_alternatives() -> None:
    root: Any = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": ["null", "string"]}]}}}
    found = leaves({"oneOf": [{"$ref": "#/$defs/a"}, {"enum": [1, "x"]}, True]}, root)
    assert found == [{"type": "null"}, {"type": "string"}, {"const": 1}, {"const": "x"}, {}]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_tool_without_properties_has_no_arguments(name: str) -> None:
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    assert start(name, empty) == 'root ::= ""'


@pytest.mark.parametrize("name", FAMILIES)
def test_a_schema_that_refers_to_itself_is_followed(name: str) -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"key": {"type": "null"}}}}}
    assert "key" in start(name, schema)


@pytest.mark.parametrize("name", FAMILIES)
def test_arguments_are_free_where_a_required_one_cannot_be_written(name: str) -> None:
    impossible = {"properties": {"key": {"enum": []}}, "required": ["key"]}
    assert "[a-zA-Z_]" in start(name, impossible)
    assert '"key"' not in start(name, impossible)


def test_gemma_sorts_its_arguments_as_its_template_does() -> None:
    schema = {"properties": {"b": {}, "a": {}}, "required": ["a", "b"]}
    assert re.findall('"([ab])"', start("gemma", schema)) == ["a", "b"]
    assert re.findall('"([ab])"', start("glm", schema)) == ["b", "a"]


X_NULL = {"properties": {"x": {"type": "null"}}}
X_TRUE = {"properties": {"x": {"const": True}}}
UNTYPED = {"properties": {"x": {"anyOf": [{"properties": {}}, {"items": {}}]}}}


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"$ref": "#/$defs/a", "$defs": {"a": X_NULL}}, {"null"}),
        ({"anyOf": [X_NULL, X_TRUE]}, {"null", "boolean"}),
        ({"additionalProperties": {"type": "string"}}, {"string"}),
        ({"properties": {"y": {}}, "patternProperties": {"^x": {"type": "array"}}}, {"array"}),
        (UNTYPED, {"object", "array"}),
        ({"properties": {"x": {}}, "additionalProperties": {"type": "string"}}, set()),
    ],
)
def test_types_come_from_wherever_the_schema_has_them(
    schema: dict[str, Any], types: set[str]
) -> None:
    assert types_of(schema, "x") == types


SPACED = {
    "qwen3_coder": "<tool_call><function=f><parameter=a b>\nx\n</parameter></function></tool_call>",
    "minicpm": '<function name="f"><param name="a b">x</param></function>',
    "pythonic": "[f(a b='x')]",
    "gemma": '<|tool_call>call:f{<|"|>a b<|"|>:<|"|>x<|"|>}<tool_call|>',
}


@pytest.mark.parametrize("name", SPACED)
def test_names_may_hold_spaces(name: str) -> None:
    assert read(DIALECTS[name], [SPACED[name]]) == Read("", [("f", '{"a b": "x"}')])


def test_a_key_that_comes_twice_is_an_object_only_where_a_grammar_let_it_through() -> None:
    tools = (Tool("f", None, {"properties": {"a": {"type": "object"}}}),)
    text = '<tool_call>f<arg_key>a</arg_key><arg_value>{"x": 1, "x": 2}</arg_value></tool_call>'
    [(_, trusted)] = read(DIALECTS["glm"], [text], tools, trusted=True).calls
    [(_, untrusted)] = read(DIALECTS["glm"], [text], tools).calls
    assert json.loads(trusted) == {"a": {"x": 2}}
    assert json.loads(untrusted) == {"a": '{"x": 1, "x": 2}'}
