"""Stop strings: on text, across borders, holding back no more than may still match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.chat.stop import StopMatcher
from tests.unit.text_tools import chunked

LETTERS = st.text("ab", max_size=12)
STOPS = st.lists(st.text("ab", min_size=1, max_size=4), max_size=3)


def run(stops: list[str], pieces: list[str], *, include: bool = False) -> tuple[str, str | None]:
    matcher = StopMatcher(stops, include=include)
    text = "".join(matcher.feed(piece) for piece in pieces)
    return text + matcher.flush(), matcher.matched


@given(STOPS, chunked(LETTERS))
def test_the_borders_of_the_pieces_change_nothing(stops: list[str], pieces: list[str]) -> None:
    text = "".join(pieces)
    assert run(stops, pieces) == run(stops, [text]) == run(stops, list(text))


@given(STOPS, chunked(LETTERS))
def test_text_ends_where_the_first_match_begins(stops: list[str], pieces: list[str]) -> None:
    text = "".join(pieces)
    passed, matched = run(stops, pieces)
    assert text.startswith(passed)
    assert not any(stop in passed for stop in stops)
    if matched is None:
        assert passed == text
    else:
        assert text.startswith(passed + matched)


@given(STOPS, chunked(LETTERS))
def test_included_the_match_is_the_end_of_the_text(stops: list[str], pieces: list[str]) -> None:
    without, matched = run(stops, pieces)
    assert run(stops, pieces, include=True) == (without + (matched or ""), matched)


@given(STOPS, chunked(LETTERS))
def test_only_what_may_still_match_is_held_back(stops: list[str], pieces: list[str]) -> None:
    matcher = StopMatcher(stops)
    came = passed = ""
    for piece in pieces:
        came += piece
        passed += matcher.feed(piece)
        if matcher.matched is not None:
            return
        held = came[len(passed) :]
        assert held == "" or any(stop.startswith(held) for stop in stops)


@pytest.mark.parametrize(
    ("stops", "text", "passed", "matched"),
    [
        (["END"], "a END b", "a ", "END"),
        (["END"], "END", "", "END"),
        (["END"], "EN", "EN", None),
        (["aab"], "aaab", "a", "aab"),
        (["b", "a"], "xab", "x", "a"),
        # Whole first: a longer one that began before it would have to be waited for.
        (["abc", "b"], "abc", "a", "b"),
        # Both end together: the longer one began first.
        (["c", "abc"], "abc", "", "abc"),
        (["\n\n", "\n"], "a\n\nb", "a", "\n"),
        (["é😀"], "xé😀y", "x", "é😀"),
        ([], "END", "END", None),
    ],
)
def test_the_match_that_is_whole_first_ends_the_text(
    stops: list[str], text: str, passed: str, matched: str | None
) -> None:
    assert run(stops, [text]) == (passed, matched)
    assert run(stops, list(text)) == (passed, matched)


def test_nothing_comes_after_a_match() -> None:
    matcher = StopMatcher(["END"])
    assert matcher.feed("a EN") == "a "
    assert matcher.feed("D b") == ""
    assert matcher.feed("more") == ""
    assert matcher.flush() == ""


def test_what_turns_out_to_be_no_match_comes_with_the_next_piece() -> None:
    matcher = StopMatcher(["<stop>", "END"])
    assert matcher.feed("a <st") == "a "
    assert matcher.feed("ill> E") == "<still> "
    assert matcher.flush() == "E"
