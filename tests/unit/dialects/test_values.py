"""Values: where JSON ends, what is none, and the types of those that are written as text."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.chat.dialects.json_text import MAX_DEPTH, parse, read_value
from ovchat_server.chat.dialects.python_calls import read_python
from ovchat_server.chat.dialects.source import DamagedError, Source, finished
from ovchat_server.chat.dialects.values import typed
from tests.unit.dialects.writers import JSON, KEYS, LEAVES, nested


def end_of(text: str, cuts: set[int]) -> int | None:
    """Where the value that a text begins with ends; None where there is none."""
    source = Source()
    steps = read_value(source)
    came = 0
    try:
        for start, end in pairwise(sorted({0, len(text)} | cuts)):
            source.push(text[start:end])
            came = end
            next(steps)
        source.ended = True
        next(steps)
    except StopIteration:
        return came - len(source.text) + source.at
    except DamagedError:
        return None
    raise AssertionError("the text has ended")


@given(st.data(), JSON, st.sampled_from([None, 1]), st.booleans())
def test_a_value_ends_where_it_ends(
    data: st.DataObject,
    value: Any,
    indent: int | None,
    ascii_only: bool,  # noqa: FBT001
) -> None:
    written = json.dumps([value], indent=indent, ensure_ascii=ascii_only)
    cuts = data.draw(st.sets(st.integers(0, len(written)), max_size=8))
    assert end_of(written, cuts) == len(written)
    assert end_of(written + "], x", cuts) == len(written)


@given(st.text(st.sampled_from('{}[]",:\\ntru1.e-+ 0'), max_size=12), st.data())
def test_what_is_a_value_is_what_the_library_reads(text: str, data: st.DataObject) -> None:
    try:
        _, expected = json.JSONDecoder(parse_constant=lambda _: 1 / 0).raw_decode(text.lstrip(" "))
        expected += len(text) - len(text.lstrip(" "))
    except (ValueError, ZeroDivisionError):
        expected = None
    cuts = data.draw(st.sets(st.integers(0, len(text)), max_size=5))
    found = end_of(text, cuts)
    assert found == end_of(text, set())
    # A number may go on in what the library leaves: `1e`, `01`, `1true`.
    if found != expected:
        assert found is None
        assert text[(expected or 1) - 1] in "0123456789truenl"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nul",
        "NaN",
        "-Infinity",
        "1e999",
        '{"a": 1, "a": 1}',
        '"\\ud800"',
        '{"\\udc00": 1}',
        '"\n"',
        "[1,]",
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        pytest.param("1" * 5000, id="long"),
    ],
)
def test_what_json_cannot_say_is_none(text: str) -> None:
    with pytest.raises(DamagedError):
        parse(text)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_the_depth_is_limited_before_anything_recurses(opening: str) -> None:
    assert end_of(opening * 100_000, set()) is None
    with pytest.raises(DamagedError):
        finished(read_python, "[" * 100_000)


def test_the_deepest_that_is_allowed_is_read() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert end_of(text, set()) == len(text)
    assert json.loads(text) == parse(text)


@given(nested(LEAVES, st.text(max_size=3)))
def test_python_is_read_as_python_writes_it(value: Any) -> None:
    assert json.loads(finished(read_python, repr(value))) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'\\x41\\u00e9\\U0001F600'", "Aé😀"),
        ("'a\nb'", "a\nb"),
        ("'\\d\\\\'", "\\d\\"),
        ('"it\'s"', "it's"),
        ("[1, 2,]", [1, 2]),
        ('{"a": true, "b": null}', {"a": True, "b": None}),
    ],
)
def test_python_that_people_write_is_read_too(text: str, value: Any) -> None:
    assert json.loads(finished(read_python, text)) == value


@pytest.mark.parametrize("text", ["x", "(1,)", "{1}", "1_0", "f()", "'a", "'\\ud800'", "[1 2]"])
def test_python_without_a_counterpart_is_damaged(text: str) -> None:
    with pytest.raises(DamagedError):
        finished(read_python, text)


@given(KEYS | st.text(max_size=5))
def test_a_string_is_itself_whatever_it_looks_like(text: str) -> None:
    assert json.loads(typed(text, frozenset({"string"}))) == text


@pytest.mark.parametrize(
    ("text", "types", "written"),
    [
        ("1", {"integer"}, "1"),
        (" 1.0\n", {"integer"}, "1.0"),
        ("1.5", {"integer"}, '"1.5"'),
        ("True", {"boolean"}, "true"),
        ("true", {"boolean"}, "true"),
        ("yes", {"boolean"}, '"yes"'),
        ("null", {"string", "null"}, "null"),
        ("1", {"string", "null"}, '"1"'),
        ('"x"', {"string", "null"}, '"\\"x\\""'),
        ('{"a": [1]}', {"object"}, '{"a": [1]}'),
        ("{'a': [None]}", {"object"}, '{"a": [null]}'),
        ("[1", {"array"}, '"[1"'),
        # Nobody says what it may be.
        ("1", set(), "1"),
        ("x", set(), '"x"'),
        ("", set(), '""'),
        ('{"a": 1, "a": 2}', set(), '"{\\"a\\": 1, \\"a\\": 2}"'),
    ],
)
def test_a_value_without_quotes_has_the_type_of_its_schema(
    text: str, types: set[str], written: str
) -> None:
    assert typed(text, frozenset(types)) == written
