"""What a draft model writes is proposed as long as it comes, and none of it harms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from ovchat_server.engine.contract.generation import GenerationRequest
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.contract.speculation import Speculation
from ovchat_server.engine.scheduling.draft_cost import DraftCost
from ovchat_server.engine.scheduling.draft_proposer import GUESS, DraftLuck, DraftProposer
from ovchat_server.engine.scheduling.drafts import FEW, SLICE, Drafts

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST, FURTHER = 0.02, 0.01


class Counting:
    """A draft model that counts on, and notes what it reads."""

    def __init__(self) -> None:
        self.read_lengths: list[int] = []
        self.salts: list[int] = []
        self.drafted: list[list[int]] = []
        self.fails = False

    def read(self, tokens: Sequence[int], cache_salt: int) -> None:
        self.read_lengths.append(len(tokens))
        self.salts.append(cache_salt)

    def draft(self, texts: Sequence[tuple[DraftProposer, int]]) -> list[float]:
        if self.fails:
            raise RuntimeError("no memory")
        self.drafted.append([count for _, count in texts])
        for text, count in texts:
            last = text.text[-1]
            text.drafted(range(last + 1, last + 1 + count))
        return [FIRST] + [FURTHER] * (max(self.drafted[-1]) - 1)


def proposer(drafts: Drafts, length: int) -> DraftProposer:
    request = GenerationRequest(
        Prompt(tuple(range(length)), cache_salt=5), 9, speculation=Speculation(9, 0, 0.25)
    )
    made = drafts.proposer(request, {7})
    assert isinstance(made, DraftProposer)
    return made


def expecting(luck: DraftLuck, *tokens: int, unsure: bool = False) -> DraftProposer:
    made = DraftProposer((1,), luck, 4096)
    made.drafted(tokens, unsure=unsure)
    return made


def chance_after(made: DraftProposer, luck: DraftLuck, *tokens: int) -> float:
    for token in tokens:
        made.append(token)
    return luck.chance


def test_what_came_of_drafts_says_how_likely_the_next_ones_are() -> None:
    luck = DraftLuck()
    for _ in range(200):
        chance_after(expecting(luck, 2, 3), luck, 2, 3)
    assert luck.chance == pytest.approx(1, abs=0.01)
    assert DraftProposer((), luck, 9).chances(2) == [luck.chance, luck.chance**2]
    # The model was made for no longer texts.
    assert not DraftProposer(range(9), luck, 9).chances(2)
    for _ in range(200):
        chance_after(expecting(luck, 2, 3), luck, 9, 3)
    assert luck.chance < 0.05


def test_what_was_bad_once_is_tried_again_some_time() -> None:
    luck = DraftLuck()
    luck.chance = 0.0
    assert chance_after(DraftProposer((), luck, 4096), luck, *range(10_000)) > 0.95 * GUESS


def test_a_draft_that_ended_early_is_one_that_did_not_come() -> None:
    luck = DraftLuck()
    unsure = expecting(luck, 2, unsure=True)
    assert unsure.proposal(9) == [2]
    before = chance_after(unsure, luck, 2)
    assert chance_after(unsure, luck, 3) < 0.96 * before


def test_tokens_are_drafted_for_all_chosen_sequences_at_once() -> None:
    model = Counting()
    drafts = Drafts(model, 4096)
    one, other = proposer(drafts, 20), proposer(drafts, 30)
    assert (one.stops, one.threshold) == ({7}, 0.25)
    drafts.find([(one, 3), (other, 2)])
    assert model.drafted[-1] == [3, 2]
    assert [one.proposal(9), other.proposal(1)] == [[20, 21, 22], [30]]
    for token in (20, 99):
        one.append(token)
    assert not one.proposal(9)


def test_a_long_text_is_read_in_slices_before_anything_is_drafted_for_it() -> None:
    model = Counting()
    drafts = Drafts(model, 4096)
    long, short = proposer(drafts, 2 * SLICE + FEW + 1), proposer(drafts, FEW)
    for _ in range(4):
        drafts.find([(long, 3), (short, 2)])
    # As in the cache of the large model, nobody else finds what was read.
    assert {*model.salts, long.cache_salt, short.cache_salt} == {5}
    assert model.read_lengths == [SLICE, 2 * SLICE, 2 * SLICE + FEW + 1]
    assert model.drafted[-4:] == [[2], [2], [2], [3, 2]]


def test_a_draft_model_that_fails_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    model = Counting()
    drafts = Drafts(model, 4096)
    one = proposer(drafts, 20)
    assert drafts.seconds(1, 3) == pytest.approx(FIRST + 2 * FURTHER)
    model.fails = True
    for _ in range(2):
        drafts.find([(one, 3)])
    assert capsys.readouterr().err == "nothing is drafted any more: no memory\n"
    assert not one.proposal(3)
    assert drafts.seconds(1, 3) == math.inf


def test_the_time_of_drafts_is_measured_by_the_number_of_sequences() -> None:
    cost = DraftCost()
    assert cost.seconds(1, 5) == 0
    cost.note(1, [FIRST, FURTHER, FURTHER])
    assert [cost.seconds(1, 5), cost.seconds(9, 5)] == pytest.approx([FIRST + 4 * FURTHER] * 2)
    for _ in range(100):
        cost.note(8, [2 * FIRST, 3 * FURTHER])
        cost.note(1, [FIRST])
    assert [cost.seconds(1, 5), cost.seconds(9, 2)] == pytest.approx(
        [FIRST + 4 * FURTHER, 2 * FIRST + 3 * FURTHER]
    )
    # Something else held it up.
    cost.note(1, [1000.0])
    assert cost.seconds(1, 1) < 1.2 * FIRST
