"""How arguments that are written one by one are described, and read by the tool's schema."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

from ovchat_server.chat.dialects.values import types_of
from ovchat_server.domain.chat import Tool
from ovchat_server.grammar.ebnf import CHARACTERS, Alphabet, character_class, literal
from ovchat_server.grammar.notation import excluding, json_notation, verbatim
from ovchat_server.grammar.schema.code_points import characters, without
from ovchat_server.grammar.schema.formats import PATTERNS
from ovchat_server.grammar.schema.nodes import PatternError
from ovchat_server.grammar.schema.patterns import read_pattern
from ovchat_server.grammar.values import json_grammar
from tests.grammars import as_regex, unenforced
from tests.unit.dialects.reading import Read, read
from tests.unit.dialects.test_tool_dialects import DIALECTS

FAMILIES = ("qwen3_coder", "glm", "minicpm", "gemma", "pythonic", "lfm2")
every_family = pytest.mark.parametrize("name", FAMILIES)


def written(name: str, schema: dict[str, Any]) -> str:
    """The grammar of a call's arguments."""
    calls = DIALECTS[name].format
    assert calls is not None
    return calls.arguments(schema)


def allowed(name: str, schema: dict[str, Any]) -> re.Pattern[str]:
    return as_regex(written(name, schema))


def nulls(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "null"} for name in "abc"}, **keywords}


@pytest.mark.parametrize("required", [[], ["a"], ["b"], ["c"], ["a", "c"], ["a", "b", "c"]])
def test_optional_members_may_be_left_out_wherever_they_stand(required: list[str]) -> None:
    regex = allowed("pythonic", nulls(required=required))
    for number in range(8):
        names = [name for bit, name in enumerate("abc") if number >> bit & 1]
        fits = {*required} <= {*names}
        assert bool(regex.fullmatch(", ".join(f"{name}=None" for name in names))) == fits
    for text in ("b=None, a=None", "a=None, ", ", a=None", "a=None, , b=None", "a=None, a=None"):
        assert not regex.fullmatch(text)


@every_family
def test_members_grow_no_faster_than_they_must(name: str) -> None:
    def length(count: int) -> int:
        properties = {f"n{number:04}": {"type": "null"} for number in range(count)}
        return len(written(name, {"type": "object", "properties": properties}))

    assert length(256) < length(128) * 2.5


@pytest.mark.parametrize(
    ("bounds", "texts"),
    [
        ({"minProperties": 2}, {"a,b", "a,c", "b,c", "a,b,c"}),
        ({"maxProperties": 1}, {"", "a", "b", "c"}),
        ({"minProperties": 1, "maxProperties": 1}, {"a", "b", "c"}),
    ],
)
def test_as_many_members_as_may_be(bounds: dict[str, Any], texts: set[str]) -> None:
    regex = allowed("gemma", nulls(**bounds))
    every = [",".join(names) for size in range(4) for names in itertools.combinations("abc", size)]
    found = {
        text
        for text in every
        if regex.fullmatch(",".join(f"{name}:null" for name in text.split(",") if name))
    }
    assert found == texts


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (-3, 20), (5, 99), (17, 17), (-120, -7), (95, 1203), (-10, 10**6)]
)
def test_integers_are_those_between_the_bounds(low: int, high: int) -> None:
    regex = as_regex(json_grammar({"type": "integer", "minimum": low, "maximum": high}))
    for value in {*range(-130, 1300), low, low - 1, high, high + 1}:
        assert bool(regex.fullmatch(str(value))) == (low <= value <= high)


def test_alternatives_that_begin_alike_end_in_different_rules() -> None:
    union = {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "string", "maxLength": 4}]}
    text = written("glm", {"type": "object", "properties": {"a": union}})
    [options] = [line for line in text.splitlines() if line.count('"</arg_value>') > 1]
    ends = re.findall(r'"</arg_value>\\x0a" (end\d+)', options)
    assert len(ends) == len({*ends}) == options.count("</arg_value>")
    assert all(f'{end} ::= ""' in text.splitlines() for end in ends)


def test_a_text_is_broken_where_the_compiler_would_misread_it() -> None:
    assert literal('ß0 "\\é\nb') == '"ß" "0 \\"\\\\é\\x0a" "b"'


def content(alphabet: Alphabet, pattern: str) -> str:
    return alphabet.content(read_pattern(pattern))


def test_patterns_leave_out_what_would_end_the_text() -> None:
    escapes = {"<": "&lt;"}
    plain = Alphabet(excluding("<"), escapes.get)
    assert "x3c" not in content(plain, "^[^a]$")
    assert content(plain, "^[;-=]$") == r"[\x3b\x3d]"
    assert content(plain, "^<$") == '("&lt;")'
    assert content(json_notation("</a>").alphabet, "^<$") == r'("\\u003c")'
    with pytest.raises(PatternError):
        content(Alphabet(excluding("<"), verbatim), "^<$")


def test_one_of_the_characters_of_a_tag_is_left_out_that_the_pattern_does_not_need() -> None:
    alphabet = Alphabet(CHARACTERS, verbatim, ("<", "/"))
    assert content(alphabet, "^[</]$") == "[/]".replace("/", r"\x2f")
    assert content(alphabet, "^<[</]$") == r"[\x3c] [\x3c]"
    with pytest.raises(PatternError):
        content(alphabet, "^</$")


def test_characters_are_in_ranges_of_whole_bytes() -> None:
    # Behind others the compiler lets an answer go on as it likes.
    assert character_class(((0xC000, 0xD7FF),)) == r"[\U0000c000-\U0000cfff\U0000d000-\U0000d7ff]"
    assert character_class(without(((0, 0x10FFFF),), characters("\xdf"))).startswith(
        r"[\x00-\x7f\U00000080-\U000000bf\U000000c0-\U000000de\U000000e0-"
    )


def of(value: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": value}, "required": ["x"], **keywords}


@every_family
@pytest.mark.parametrize("string", PATTERNS)
def test_every_format_can_be_written(name: str, string: str) -> None:
    assert not unenforced(of({"type": "string", "format": string}), DIALECTS[name].format.arguments)


# How each writes the argument x, whose value is a text, or something else.
WRITTEN = {
    "qwen3_coder": ("<parameter=x>\n{}\n</parameter>\n",) * 2,
    "glm": ("<arg_key>x</arg_key>\n<arg_value>{}</arg_value>\n",) * 2,
    "minicpm": ('<param name="x">{}</param>',) * 2,
    "gemma": ('x:<|"|>{}<|"|>', "x:{}"),
    "pythonic": ('x="{}"', "x={}"),
    "lfm2": ('x="{}"', "x={}"),
}


@every_family
@pytest.mark.parametrize(
    ("string", "right", "wrong"),
    [
        ("date", "2024-02-28", "2023-02-29"),
        ("date", "1999-12-31", "0000-01-01"),
        ("date-time", "2024-06-30T23:59:59Z", "2024-06-31T23:59:59Z"),
        ("duration", "P1Y2M3DT4H", "P1H"),
        ("hostname", "a-b.example", "A..b"),
        ("ipv6", "1:2:3:4:5:6:7:8", "1:2:3:4::5:6:7:8:9"),
        ("email", "jo.doe@example.org", "jo.@example"),
    ],
)
def test_formats_are_those_of_json(name: str, string: str, right: str, wrong: str) -> None:
    schema: dict[str, Any] = of({"type": "string", "format": string})
    text, json_regex = WRITTEN[name][0], as_regex(json_grammar(schema))
    for value, fits in ((right, True), (wrong, False)):
        assert bool(json_regex.fullmatch(json.dumps({"x": value}))) == fits
        assert bool(allowed(name, schema).fullmatch(text.format(value))) == fits


@every_family
@pytest.mark.parametrize(
    ("value", "right", "wrong"),
    [
        ({"type": "number", "minimum": 0, "maximum": 1}, 0.5, 1.5),
        ({"type": "integer", "multipleOf": 15, "minimum": 0, "maximum": 240}, 45, 46),
        ({"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 7}]}, 5, 8),
        ({"$ref": "#/$defs/count", "maximum": 9}, 4, 10),
        ({"type": ["integer", "string"], "const": 7}, 7, 8),
        ({"enum": [1, 2, 3], "minimum": 2}, 3, 1),
        ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, [1, 2], [1, 1]),
        ({"minimum": 3, "type": ["number"], "title": "T"}, 3, 2),
        ({"oneOf": [{"type": "integer", "maximum": 0}, {"type": "null"}]}, -4, 4),
    ],
)
def test_what_json_enforces_is_enforced(
    name: str, value: dict[str, Any], right: Any, wrong: Any
) -> None:
    definitions = {"count": {"type": "integer", "minimum": 0}}
    schema = of(value, **{"$defs": definitions})
    comma = "," if name == "gemma" else ", "
    for item, fits in ((right, True), (wrong, False)):
        text = WRITTEN[name][1].format(json.dumps(item, separators=(comma, ":")))
        assert bool(allowed(name, schema).fullmatch(text)) == fits


@every_family
def test_a_pattern_has_a_length(name: str) -> None:
    regex = allowed(name, of({"type": "string", "pattern": "^[A-Z]+$", "maxLength": 4}))
    assert regex.fullmatch(WRITTEN[name][0].format("ABCD"))
    assert not regex.fullmatch(WRITTEN[name][0].format("ABCDE"))


@every_family
def test_a_tool_without_properties_has_no_arguments(name: str) -> None:
    regex = allowed(name, {"type": "object", "properties": {}, "additionalProperties": False})
    assert regex.pattern.replace("(?:", "").strip(")") == ""


@every_family
def test_a_schema_that_refers_to_itself_is_followed(name: str) -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"key": {"type": "null"}}}}}
    assert "key" in written(name, schema)


FROM_FIVE = {"type": "integer", "minimum": 5}
# What each cannot say: a name, or a text.
UNWRITABLE: list[tuple[str, dict[str, Any], str]] = [
    ("qwen3_coder", {"a<b": {}}, "an argument called 'a<b'"),
    ("glm", {" a": {}}, "an argument called ' a'"),
    ("minicpm", {'a"b': {}}, "an argument called 'a\"b'"),
    ("pythonic", {"a=b": {}}, "an argument called 'a=b'"),
    ("lfm2", {"a\nb": {}}, "an argument called 'a\\nb'"),
    ("qwen3_coder", {"a": {"const": "</parameter>"}}, "a text with </parameter> in it"),
    ("glm", {"a": {"enum": ["</arg_value>"]}}, "a text with </arg_value> in it"),
    ("gemma", {"a": {"const": '<|"|>'}}, 'a text with <|"|> in it'),
    ("gemma", {'<|"|>': {}}, 'a text with <|"|> in it'),
]


@pytest.mark.parametrize(("name", "properties", "what"), UNWRITABLE)
def test_what_a_family_cannot_say_is_named(
    name: str, properties: dict[str, Any], what: str
) -> None:
    needed = {"type": "object", "properties": properties, "required": [*properties]}
    arguments = DIALECTS[name].format.arguments
    assert unenforced(needed, arguments) == f"asks for {what}, so it cannot be enforced"
    assert not unenforced({**needed, "required": []}, arguments)


def test_gemma_sorts_its_arguments_as_its_template_does() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}, "required": ["a", "b"]}
    assert re.findall('"([ab]):"', written("gemma", schema)) == ["a", "b"]
    assert re.findall(">([ab])<", written("glm", schema)) == ["b", "a"]


@pytest.mark.parametrize("name", ["qwen3_coder", "glm", "minicpm"])
def test_a_text_that_is_read_as_something_else_is_not_written(name: str) -> None:
    text = WRITTEN[name][0]
    union = allowed(
        name, of({"anyOf": [{"type": "integer", "minimum": 5}, {"maxLength": 3, "type": "string"}]})
    )
    assert union.fullmatch(text.format("12"))
    assert union.fullmatch(text.format("x12"))
    assert not union.fullmatch(text.format("3"))
    names = allowed(
        name,
        of(
            {
                "anyOf": [
                    {"type": "integer", "minimum": 5},
                    {"pattern": "^[a-z]+$", "type": "string"},
                ]
            }
        ),
    )
    assert names.fullmatch(text.format("abc"))
    hosts: dict[str, Any] = of(
        {"anyOf": [{"type": "integer"}, {"format": "hostname", "type": "string"}]}
    )
    hosts["properties"]["x"]["anyOf"][0]["minimum"] = 5
    assert not allowed(name, hosts).fullmatch(text.format("example"))


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
    [(_, enforced)] = read(DIALECTS["glm"], [text], tools, enforced=True).calls
    [(_, untrusted)] = read(DIALECTS["glm"], [text], tools).calls
    assert json.loads(enforced) == {"a": {"x": 2}}
    assert json.loads(untrusted) == {"a": '{"x": 1, "x": 2}'}
