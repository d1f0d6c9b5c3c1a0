"""Finding calls in an answer; what is none stays text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.chat.tool_calls import HermesParser, ParsedCall, parse_call
from tests.unit.text_tools import chunked, mixed

GOOD = '<tool_call>\n{"name": "f", "arguments": {"b": 1, "a": "x"}}\n</tool_call>'
CALL = ParsedCall("f", '{"b": 1, "a": "x"}')
BAD = "<tool_call>f(1)</tool_call>"
CLOSE = "</tool_call>"
CUT = "|".join(CLOSE[:length] for length in range(len(CLOSE) - 1, 0, -1))
TEXTS = mixed("<tool_call>", "</tool_call>", GOOD, BAD, '{"name": "g"}', "\n", "hi")

KEYS = st.text(max_size=3)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def run(pieces: list[str]) -> tuple[str, list[ParsedCall]]:
    parser = HermesParser()
    parts = [*(parser.feed(piece) for piece in pieces), parser.flush()]
    return "".join(p.content for p in parts), [call for p in parts for call in p.calls]


@given(chunked(TEXTS))
def test_the_borders_of_the_pieces_change_nothing(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert run(pieces) == run([text]) == run(list(text))


def reference(text: str) -> tuple[str, list[ParsedCall]]:
    """What a reader of the whole text finds; white space aside."""
    calls: list[ParsedCall] = []

    def replacement(match: re.Match[str]) -> str:
        # Cut inside the closing tag, a call is whole.
        body = match[1] if match[2] else re.sub(rf"({CUT})\Z", "", match[1])
        call = parse_call(body)
        calls.extend([call] if call else [])
        return "" if call else match[0]

    return re.sub(r"(?s)<tool_call>(.*?)(</tool_call>|\Z)", replacement, text), calls


@given(chunked(TEXTS))
def test_nothing_but_calls_and_white_space_is_taken_out(pieces: list[str]) -> None:
    content, calls = run(pieces)
    expected, expected_calls = reference("".join(pieces))
    assert calls == expected_calls
    assert "".join(content.split()) == "".join(expected.split())


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (GOOD, "", [CALL]),
        (f"\n{GOOD}\n{GOOD}\n", "", [CALL, CALL]),
        (f"Let me see.\n\n{GOOD}", "Let me see.", [CALL]),
        (f"{GOOD}\nDone. ", "Done. ", [CALL]),
        (f"a {GOOD} b {GOOD} c", "abc", [CALL, CALL]),
        ("no call\n", "no call\n", []),
        # What does not parse comes back, tags and all.
        (BAD, BAD, []),
        (f" a\n{BAD} b", f" a\n{BAD} b", []),
        (f"{GOOD} {BAD} b", f"{BAD} b", [CALL]),
        (f"{BAD}{GOOD}", BAD, [CALL]),
        ("a</tool_call>", "a</tool_call>", []),
        ("<tool_call></tool_call>", "<tool_call></tool_call>", []),
        # Cut off: a call that is whole but for its closing tag is a call.
        (GOOD.removesuffix("</tool_call>"), "", [CALL]),
        (GOOD.removesuffix("_call>"), "", [CALL]),
        ('a <tool_call>{"name": "f", "argu', 'a <tool_call>{"name": "f", "argu', []),
        ("<tool_call>", "<tool_call>", []),
        ("a\n<tool_c", "a\n<tool_c", []),
        (f"{GOOD}\n<tool_c", "<tool_c", [CALL]),
    ],
)
def test_calls_are_found_and_text_around_them_is_kept(
    text: str, content: str, calls: list[ParsedCall]
) -> None:
    assert run([text]) == (content, calls)
    assert run(list(text)) == (content, calls)


def test_text_is_handed_out_as_soon_as_it_cannot_be_a_call() -> None:
    parser = HermesParser()
    assert parser.feed("a < b").content == "a < b"
    assert parser.feed(" \n").content == ""
    assert parser.feed("<tool").content == ""
    assert parser.feed("box>").content == " \n<toolbox>"
    assert parser.feed(GOOD).calls == (CALL,)


@given(st.dictionaries(KEYS, JSON, max_size=3))
def test_arguments_are_the_object_that_the_model_wrote(arguments: dict[str, Any]) -> None:
    call = parse_call(json.dumps({"name": "f", "arguments": arguments}))
    assert call is not None
    assert json.loads(call.arguments) == arguments
    assert list(json.loads(call.arguments)) == list(arguments)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"name": "f"}', "{}"),
        ('{"name": "f", "parameters": {"a": 1}}', '{"a": 1}'),
        ('{"arguments": {"z": 1, "a": 2}, "name": "f"}', '{"z": 1, "a": 2}'),
        (' {"name": "f", "arguments": {"x": "\\u00e9\\ud83d\\ude00"}} ', '{"x": "é😀"}'),
    ],
)
def test_a_call_has_a_name_and_may_have_arguments(text: str, arguments: str) -> None:
    assert parse_call(text) == ParsedCall("f", arguments)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f()",
        "[]",
        '"f"',
        "{}",
        '{"name": 1}',
        '{"name": "f", "arguments": []}',
        '{"name": "f", "arguments": "x"}',
        '{"name": "f", "arguments": null}',
        '{"name": "f"} {"name": "g"}',
        # What JSON cannot say, and no client could read.
        '{"name": "f", "arguments": {"x": NaN}}',
        '{"name": "f", "arguments": {"x": 1e999}}',
        '{"name": "f", "arguments": {"x": "\\ud800"}}',
        '{"name": "\\udfff"}',
        pytest.param('{"name": "f", "arguments": {"x": ' + "1" * 5000 + "}}", id="long number"),
        pytest.param('{"name": "f", "arguments": {"x": ' + "[" * 100_000, id="deep"),
    ],
)
def test_what_is_no_call_is_none(text: str) -> None:
    assert parse_call(text) is None
