"""The input of a custom tool's call, as it comes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.responses.custom_input import InputDecoder

# Of what splits badly there is much: escapes, pairs of surrogates, line ends.
TEXTS = st.text(st.sampled_from('ab"\\/\n\t\0é€😀u') | st.characters(exclude_categories=["Cs"]))


def decoded(*pieces: str, cut: bool = False) -> list[str]:
    decoder = InputDecoder()
    return [*map(decoder.add, pieces), decoder.end(cut=cut)]


def cuts(arguments: str) -> list[list[str]]:
    """All ways to cut it in two, and one to cut it everywhere."""
    halves = [[arguments[:place], arguments[place:]] for place in range(len(arguments) + 1)]
    return [*halves, list(arguments)]


@given(TEXTS, st.sampled_from(["", " ", "\n"]))
def test_however_it_is_cut_it_is_what_json_has(text: str, space: str) -> None:
    for ascii_only in (False, True):
        arguments = space + json.dumps({"input": text}, ensure_ascii=ascii_only) + space
        for pieces in cuts(arguments):
            assert "".join(decoded(*pieces)) == text


def test_characters_go_out_as_soon_as_they_are_complete() -> None:
    assert decoded('{"in', 'put": "a', "b\\", "n", "\\ud83d", "\\ude0", '0c"', "}") == [
        *("", "a", "b", "\n", "", "", "😀c", "", ""),
    ]


@pytest.mark.parametrize("arguments", ["", "ls", '{"inp', '{"input": 5}', '{"text": "a"}', "[1]"])
def test_arguments_of_another_shape_are_the_input_as_they_are(arguments: str) -> None:
    for pieces in cuts(arguments):
        assert decoded(*pieces) == [*("" for _ in pieces), arguments]


@pytest.mark.parametrize("arguments", ["", "ls", '{"input": 5', '{"text": "a'])
def test_so_they_are_where_they_are_cut(arguments: str) -> None:
    assert "".join(decoded(arguments, cut=True)) == arguments


@pytest.mark.parametrize("arguments", [" ", "{", '{\n  "', '{"inp', '{"input"', '{"input" : '])
def test_of_json_that_just_begins_there_is_no_input(arguments: str) -> None:
    assert "".join(decoded(arguments, cut=True)) == ""


@pytest.mark.parametrize(
    ("string", "text"),
    [
        (r"a\d\u12", r"a\d\u12"),
        (r"\ud83d", "�"),
        (r"\ud83dx", "�x"),
        (r"\ud83d\n", "�\n"),
        (r"\ud83d\ud83d\ude00", "�😀"),
        (r"\ude00\uD83D\uDE00", "�😀"),
        ("line\nline", "line\nline"),
    ],
)
def test_what_is_no_valid_string_is_decoded_as_far_as_it_goes(string: str, text: str) -> None:
    for pieces in cuts(f'{{"input": "{string}"}}'):
        assert "".join(decoded(*pieces)) == text


@pytest.mark.parametrize("cut", ["", "\\", r"\u", r"\u00e", r"\ud83d", r"\ud83d\ude0"])
def test_of_a_cut_text_there_are_the_complete_characters(cut: str) -> None:
    for pieces in cuts('{"input": "ab' + cut):
        assert "".join(decoded(*pieces, cut=True)) == "ab"
