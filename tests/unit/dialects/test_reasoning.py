"""Telling reasoning from answer, however the text is cut."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.chat.dialects.base import CombinedDialect, ReasoningDialect
from ovchat_server.chat.dialects.registry import REASONING_DIALECTS
from ovchat_server.chat.dialects.thinking import (
    DEEPSEEK,
    GEMMA,
    GRANITE,
    LFM2,
    MISTRAL,
    PHI4,
    QWEN3,
)
from tests.unit.text_tools import chunked, mixed

# How each marks its reasoning, and its answer where it does.
MARKS = {
    "qwen3": ("<think>", "</think>"),
    "phi4": ("<think>", "</think>"),
    "lfm2": ("<think>", "</think>"),
    "deepseek": ("<think>", "</think>"),
    "granite": ("<think>", "</think>", "<response>", "</response>"),
    "mistral": ("[THINK]", "[/THINK]"),
    "gemma": ("<|channel>thought", "<channel|>"),
}
DIALECTS = {d.name: d for d in REASONING_DIALECTS if isinstance(d, ReasoningDialect)}
every_dialect = pytest.mark.parametrize("name", sorted(DIALECTS))


def run(dialect: ReasoningDialect, pieces: list[str], *, opened: bool = False) -> tuple[str, str]:
    parser = dialect.parser(opened)
    splits = [*(parser.feed(piece) for piece in pieces), parser.flush()]
    return "".join(s.reasoning for s in splits), "".join(s.content for s in splits)


def test_every_registered_dialect_is_tested() -> None:
    assert set(MARKS) == set(DIALECTS)
    assert [d.name for d in REASONING_DIALECTS if isinstance(d, CombinedDialect)] == ["gpt_oss"]


@every_dialect
@given(data=st.data(), opened=st.booleans())
def test_the_borders_of_the_pieces_change_nothing(
    name: str,
    data: st.DataObject,
    opened: bool,  # noqa: FBT001
) -> None:
    pieces = data.draw(chunked(mixed(*MARKS[name], "\n", " ", "Hm", "answer")))
    text, dialect = "".join(pieces), DIALECTS[name]
    assert run(dialect, pieces, opened=opened) == run(dialect, [text], opened=opened)
    assert run(dialect, list(text), opened=opened) == run(dialect, [text], opened=opened)


@every_dialect
@given(data=st.data(), opened=st.booleans())
def test_only_tags_and_white_space_are_left_out(
    name: str,
    data: st.DataObject,
    opened: bool,  # noqa: FBT001
) -> None:
    text = data.draw(mixed(*MARKS[name], "\n", " ", "Hm", "answer"))
    reasoning, content = run(DIALECTS[name], [text], opened=opened)
    whole = {"".join(text.split())}
    for tag in MARKS[name]:
        whole |= {
            rest[: found.start()] + rest[found.end() :]
            for rest in whole
            for found in re.finditer(re.escape(tag), rest)
        }
    assert "".join((reasoning + content).split()) in whole


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
        # The tag that the prompt ended with, repeated.
        (True, "<think>\nHm</think>Yes.", "Hm", "Yes."),
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
@pytest.mark.parametrize("dialect", [QWEN3, DEEPSEEK, PHI4, LFM2])
def test_reasoning_is_told_from_the_answer(
    opened: bool,  # noqa: FBT001
    text: str,
    reasoning: str,
    content: str,
    dialect: ReasoningDialect,
) -> None:
    assert run(dialect, [text], opened=opened) == (reasoning, content)
    assert run(dialect, list(text), opened=opened) == (reasoning, content)


@pytest.mark.parametrize(
    ("dialect", "text", "reasoning", "content"),
    [
        (GRANITE, "<think>Hm</think><response>Yes.</response>", "Hm", "Yes."),
        (GRANITE, "<think>Hm</think>\n<response>\nYes.\n</response>\n", "Hm", "Yes.\n"),
        (GRANITE, "<think>Hm\n</think><response>Yes.\n", "Hm", "Yes.\n"),
        (GRANITE, "<think>Hm</think>Yes.</response>", "Hm", "Yes.</response>"),
        (GRANITE, "Yes.", "", "Yes."),
        (MISTRAL, "[THINK]Hm[/THINK]Yes.", "Hm", "Yes."),
        (GEMMA, "<|channel>thought\nHm\n<channel|>Yes.", "Hm", "Yes."),
        (GEMMA, "<|channel>thought\n<channel|>Yes.", "", "Yes."),
        (GEMMA, "<|channel>other\nx", "", "<|channel>other\nx"),
    ],
)
def test_other_families_have_other_tags(
    dialect: ReasoningDialect, text: str, reasoning: str, content: str
) -> None:
    assert run(dialect, [text]) == (reasoning, content)
    assert run(dialect, list(text)) == (reasoning, content)


def test_text_is_handed_out_as_soon_as_it_is_told_apart() -> None:
    parser = QWEN3.parser(False)  # noqa: FBT003
    assert parser.feed("<think>\nHm").reasoning == "Hm"
    assert parser.reasoning
    assert parser.feed(", so\n").reasoning == ", so"
    assert parser.feed("then <").reasoning == "\nthen"
    assert parser.feed("3</think>\n").reasoning == " <3"
    assert not parser.reasoning
    assert parser.feed("Yes").content == "Yes"
    assert parser.feed(" \n").content == " \n"


@every_dialect
def test_an_answer_without_reasoning_does_not_wait(name: str) -> None:
    assert DIALECTS[name].parser(False).feed("Y").content == "Y"  # noqa: FBT003


@pytest.mark.parametrize(
    ("dialect", "prompt", "opened"),
    [
        (QWEN3, "...assistant\n<think>\n", True),
        (QWEN3, "...assistant\n", False),
        (QWEN3, "...assistant\n<think>\n\n</think>\n\n", False),
        (GEMMA, "<|turn>model\n<|channel>thought\n", True),
        # The first distilled models of R1 leave out the opening that nothing wrote.
        (DEEPSEEK, "<｜Assistant｜>", True),
        (DEEPSEEK, "<｜Assistant｜><think>\n", True),
        (DEEPSEEK, "<｜Assistant｜><think></think>", False),
    ],
)
def test_the_end_of_the_prompt_says_whether_the_answer_begins_inside(
    dialect: ReasoningDialect,
    prompt: str,
    opened: bool,  # noqa: FBT001
) -> None:
    assert dialect.opened_by(prompt) is opened


@pytest.mark.parametrize(
    ("answer", "inside"),
    [("<think>Hm", True), ("<think>Hm</think>Yes", False), ("Yes", False), ("", False)],
)
def test_so_does_the_beginning_of_an_answer_that_is_continued(
    answer: str,
    inside: bool,  # noqa: FBT001
) -> None:
    assert QWEN3.left_open(answer) is inside
