"""Whose each row of logits is, and what is noticed where something does not fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.engine.genai.row_owners import MisattributedError, row_owners


@dataclass(eq=False)
class Running:
    """A sequence, or a search, and what the step reads of it."""

    name: str
    prompt: list[int]
    answer: list[int]
    start: int = 0
    end: int | None = None
    beams: int = 1
    idle: bool = False
    echoes: bool = False

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.answer)

    @property
    def last(self) -> int | None:
        return self.answer[-1] if self.answer and self.beams == 1 else None

    def read_from(self, position: int) -> None:
        assert position == self.start, "a prompt is read from what was cached of it"

    @property
    def read(self) -> list[tuple[int, int]]:
        """Tokens and positions."""
        if self.idle:
            return []
        if self.answer:
            return [(self.answer[-1] + beam, self.length - 1) for beam in range(self.beams)]
        whole = zip(self.prompt, range(self.length), strict=True)
        return list(whole)[self.start : self.end]

    @property
    def rows(self) -> int:
        if self.echoes and not self.answer:
            return len(self.read)
        if self.idle or (not self.answer and self.end not in (None, self.length)):
            return 0
        return self.beams if self.answer else 1


def going_on(name: str, **fields: object) -> Running:
    return Running(name, [1, 2, 3], [4, 5], **fields)  # type: ignore[arg-type]


def read_whole(name: str) -> Running:
    return Running(name, [11, 12, 13, 14], [])


def read_of(name: str, start: int, end: int | None, **fields: object) -> Running:
    return Running(name, list(range(20, 30)), [], start, end, **fields)  # type: ignore[arg-type]


def echoed(name: str, start: int = 0, end: int | None = None) -> Running:
    return read_of(name, start, end, echoes=True)


def step(running: list[Running]) -> tuple[list[int], list[int]]:
    """What genai reads: first those that go on, then prompts."""
    ordered = sorted(running, key=lambda item: not item.answer)
    read = [pair for item in ordered for pair in item.read]
    return [token for token, _ in read], [position for _, position in read]


def owners_of(
    running: list[Running],
    tokens: list[int] | None = None,
    positions: list[int] | None = None,
    rows: int | None = None,
) -> str:
    read, places = step(running)
    owners = row_owners(
        np.array(read if tokens is None else tokens, np.int64),
        np.array(places if positions is None else positions, np.int64),
        running,
        sum(item.rows for item in running) if rows is None else rows,
    )
    for item in running:
        # So each row is behind the token that it says.
        expected = [position for _, position in item.read][-item.rows :] if item.rows else []
        assert [row.position for row in owners if row.owner is item] == expected
    return "".join(row.owner.name for row in owners)


MIXED = [
    going_on("a"),
    going_on("b", beams=3),
    going_on("c", idle=True),
    going_on("d"),
    read_whole("e"),
    read_of("f", 6, None),
    read_of("g", 9, None),
    read_of("h", 0, 4),
]


@pytest.mark.parametrize(
    ("running", "expected"),
    [
        pytest.param([going_on("a"), going_on("b")], "ab", id="sequences that go on"),
        pytest.param([read_whole("a"), read_of("b", 0, None)], "ab", id="whole prompts"),
        pytest.param([read_of("a", 4, None)], "a", id="a beginning that is cached"),
        pytest.param([read_of("a", 9, None)], "a", id="all but the last token is cached"),
        pytest.param([read_whole("a"), read_of("b", 0, 4)], "a", id="a prompt read in part"),
        pytest.param([read_of("a", 3, 7)], "", id="the middle of a prompt"),
        pytest.param([going_on("a", beams=3), going_on("b")], "aaab", id="a search"),
        pytest.param(
            [going_on("a", beams=2), going_on("b", beams=4)], "aabbbb", id="searches of one length"
        ),
        pytest.param([going_on("a", idle=True), going_on("b")], "b", id="one that does not run"),
        pytest.param([read_whole("a"), read_whole("b")], "ab", id="the same prompt twice"),
        pytest.param([echoed("a"), read_whole("b")], "aaaaaaaaaab", id="a prompt that is echoed"),
        pytest.param([read_whole("a"), echoed("b", 3, 7)], "abbbb", id="the middle of one"),
        pytest.param([echoed("a", 9), going_on("b", idle=True)], "a", id="the end of one"),
        pytest.param([going_on("a", echoes=True), going_on("b")], "ab", id="one that was echoed"),
        pytest.param([going_on("a", idle=True)], "", id="nothing"),
        pytest.param(MIXED, "abbbdefg", id="all at once"),
    ],
)
def test_each_row_has_its_owner(running: list[Running], expected: str) -> None:
    # Of two that are the same nobody could say which one runs.
    for number, item in enumerate(running):
        item.answer = [100 * number + token % 100 for token in item.answer]

    assert owners_of(running) == expected


KINDS = st.sampled_from(["on", "search", "idle", "whole", "cached", "echoed"])


@given(st.lists(st.tuples(KINDS, st.integers(1, 40), st.integers(0, 30)), max_size=12))
def test_any_batch_in_the_order_of_coming_is_told_apart(
    drawn: list[tuple[str, int, int]],
) -> None:
    running = []
    for number, (kind, length, cached) in enumerate(drawn):
        prompt = [number * 1000 + place for place in range(length)]
        began = kind in ("on", "search", "idle")
        item = Running(
            chr(65 + number),
            prompt,
            [number * 1000 + 500] * (1 + cached) if began else [],
            start=min(cached, length - 1) if kind == "cached" else 0,
            beams=3 if kind == "search" else 1,
            idle=kind == "idle",
            echoes=kind == "echoed",
        )
        running.append(item)
    # Who goes on came before who begins.
    running.sort(key=lambda item: not item.answer)
    expected = "".join(item.name * item.rows for item in running)

    assert owners_of(running) == expected


ON_AND_NEW = [going_on("a"), read_whole("b")]


@pytest.mark.parametrize(
    ("tokens", "positions", "rows"),
    [
        pytest.param([6, 11, 12, 13, 14], None, None, id="another last token"),
        pytest.param(None, [3, 0, 1, 2, 3], None, id="an earlier position"),
        pytest.param(None, [5, 0, 1, 2, 3], None, id="a later position"),
        pytest.param(None, None, 3, id="a row too many"),
        pytest.param(None, None, 1, id="a row too few"),
        pytest.param([5, 11, 12, 99, 14], None, None, id="another token in a prompt"),
        pytest.param([5, 11, 12, 13, 14], [4, 0, 1, 3, 3], None, id="a gap in a prompt"),
        pytest.param([5, 11, 12, 13, 14, 15], [4, 0, 1, 2, 3, 4], None, id="more than a prompt"),
        pytest.param([5, 11, 12, 13, 14, 5], [4, 0, 1, 2, 3, 4], 3, id="one sequence twice"),
        pytest.param([11, 12, 13, 14, 5], [0, 1, 2, 3, 4], None, id="prompts first"),
        pytest.param([77], [0], 1, id="nobody's token"),
        pytest.param([], [], 2, id="rows of nothing"),
    ],
)
def test_what_does_not_fit_is_noticed(
    tokens: list[int] | None, positions: list[int] | None, rows: int | None
) -> None:
    with pytest.raises(MisattributedError):
        owners_of(ON_AND_NEW, tokens, positions, rows)


def test_a_prompt_that_came_before_a_sequence_that_goes_on_is_noticed() -> None:
    with pytest.raises(MisattributedError, match="order"):
        owners_of([read_whole("a"), going_on("b")])


def test_two_sequences_that_change_places_are_noticed() -> None:
    running = [going_on("a"), Running("b", [1, 2], [7, 8])]
    tokens, positions = step(running)

    with pytest.raises(MisattributedError):
        owners_of(running, tokens[::-1], positions[::-1])
