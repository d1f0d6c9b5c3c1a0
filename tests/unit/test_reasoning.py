"""Telling reasoning from answer, however the text is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.chat.reasoning import ThinkParser
from tests.unit.text_tools import chunked, mixed

TEXTS = mixed("<think>", "</think>", "\n", " ", "Hm", "answer")


def run(pieces: list[str], *, opened: bool = False) -> tuple[str, str]:
    parser = ThinkParser(opened_by_prompt=opened)
    splits = [*(parser.feed(piece) for piece in pieces), parser.flush()]
    return "".join(s.reasoning for s in splits), "".join(s.content for s in splits)


@given(chunked(TEXTS), st.booleans())
def test_the_borders_of_the_pieces_change_nothing(pieces: list[str], opened: bool) -> None:  # noqa: FBT001
    text = "".join(pieces)
    assert run(pieces, opened=opened) == run([text], opened=opened)
    assert run(list(text), opened=opened) == run([text], opened=opened)


@given(chunked(TEXTS), st.booleans())
def test_only_tags_and_white_space_are_left_out(pieces: list[str], opened: bool) -> None:  # noqa: FBT001
    text = "".join(pieces)
    reasoning, content = run(pieces, opened=opened)
    kept = "".join((reasoning + content).split())
    whole = "".join(text.split())
    assert kept in {
        whole,
        whole.removeprefix("<think>"),
        whole.replace("</think>", "", 1),
        whole.removeprefix("<think>").replace("</think>", "", 1),
    }


@pytest.mark.parametrize(
    ("opened", "text", "reasoning", "content"),
    [
        (False, "<think>\nHm\n</think>\n\nYes.", "Hm", "Yes."),
        (False, "\n<think>Hm</think>Yes.\n", "Hm", "Yes.\n"),
        (False, "<think>\n\n</think>\n\nYes.", "", "Yes."),
        (False, "<think></think>", "", ""),
        (False, "<think>a\n\n b</think> c", "a\n\n b", "c"),
        (True, "\nHm\n</think>\n\nYes.", "Hm", "Yes."),
        (True, "</think>Yes.", "", "Yes."),
        # Cut off inside: what was said stays reasoning.
        (False, "<think>Hm, so", "Hm, so", ""),
        (True, "Hm, so \n", "Hm, so", ""),
        (True, "Hm</thi", "Hm</thi", ""),
        (True, "  ", "", ""),
        # No reasoning at all: the answer is untouched.
        (False, " Yes.\n", "", " Yes.\n"),
        (False, "<thi", "", "<thi"),
        (False, " \n", "", " \n"),
        (False, "a <think>b</think>", "", "a <think>b</think>"),
        # The tags mean something once.
        (False, "<think>a</think>b</think>c<think>d", "a", "b</think>c<think>d"),
        (True, "a<think>b</think>c", "a<think>b", "c"),
    ],
)
def test_reasoning_is_told_from_the_answer(
    opened: bool,  # noqa: FBT001
    text: str,
    reasoning: str,
    content: str,
) -> None:
    assert run([text], opened=opened) == (reasoning, content)
    assert run(list(text), opened=opened) == (reasoning, content)


def test_text_is_handed_out_as_soon_as_it_is_told_apart() -> None:
    parser = ThinkParser(opened_by_prompt=False)
    assert parser.feed("<think>\nHm").reasoning == "Hm"
    assert parser.feed(", so\n").reasoning == ", so"
    assert parser.feed("then <").reasoning == "\nthen"
    assert parser.feed("3</think>\n").reasoning == " <3"
    assert parser.feed("Yes").content == "Yes"
    assert parser.feed(" \n").content == " \n"


def test_an_answer_without_reasoning_does_not_wait() -> None:
    assert ThinkParser(opened_by_prompt=False).feed("Y").content == "Y"
