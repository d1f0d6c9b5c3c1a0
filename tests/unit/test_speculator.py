"""As many tokens are proposed as make a step worth its time."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ovchat_server.engine.scheduling.prompt_lookup import PromptLookups
from ovchat_server.engine.scheduling.speculator import Speculator
from ovchat_server.engine.scheduling.step_cost import FEW, USUAL, StepCost

MANY = 99
# The time of a step that reads a token of each sequence.
PLAIN = 0.02
# What is looked up is known already.
AT_ONCE = PromptLookups().seconds


@dataclass(frozen=True)
class Sequence:
    """One for which tokens may be proposed."""

    likely: tuple[float, ...] = ()
    unread: int = 1
    known: int = 1
    once: int = 0
    preparation: float = 0

    def chances(self) -> tuple[float, ...]:
        return self.likely


def measured(running: int, each: float) -> Speculator:
    """Where a token more takes so much of a plain step's time."""
    speculator = Speculator()
    speculator.note(running, 0, PLAIN)
    for _ in range(20):
        for further in (1, 4, 8, 16):
            speculator.note(running, further, PLAIN * (1 + each * further))
            speculator.note(running, 0, PLAIN)
    return speculator


def counts(
    speculator: Speculator, *candidates: Sequence, running: int = 0, room: int = MANY
) -> list[int]:
    """How many tokens are proposed for each."""
    chosen = speculator.propose(running or len(candidates), candidates, room, AT_ONCE)
    return [sum(count for item, count in chosen if item is one) for one in candidates]


FALLING = tuple(0.8**number for number in range(1, 17))
SURE = (1.0,) * 16


def test_nothing_is_proposed_before_a_step_was_measured() -> None:
    speculator = Speculator()
    assert counts(speculator, Sequence(SURE)) == [0]
    speculator.note(1, 0, PLAIN)
    assert counts(speculator, Sequence(SURE)) == [16]
    # With others beside it, it is another step.
    assert counts(speculator, Sequence(SURE), running=2) == [0]


def test_what_was_measured_at_the_start_counts_from_the_first_step_on() -> None:
    """Of one sequence: where a guess would say that it is not worth a trial, and the other way."""
    likely = Sequence((0.7, 0.49))
    for further, expected in ((1.02, 2), (3.0, 0)):
        speculator = Speculator()
        speculator.begin(PLAIN, [(2, PLAIN * further), (16, PLAIN * further)])
        assert counts(speculator, likely) == [expected]
    speculator = Speculator()
    speculator.note(1, 0, PLAIN)
    assert counts(speculator, likely) == [2]


def test_the_more_a_token_costs_the_less_is_proposed() -> None:
    found = [counts(measured(1, each), Sequence(FALLING))[0] for each in (0, 0.02, 0.1, 0.3, 1)]
    assert found == sorted(found, reverse=True)
    assert (found[0], found[-1]) == (16, 0)
    assert len({*found}) >= 4


@pytest.mark.parametrize(
    ("candidates", "running", "room", "expected"),
    [
        pytest.param([Sequence()], 1, MANY, [0], id="nothing was found"),
        pytest.param([Sequence((0.01,) * 4)], 1, MANY, [0], id="nothing that is likely"),
        # What a token more costs, it costs all of them.
        pytest.param([Sequence((0.5,))], 15, MANY, [0], id="one among many"),
        # All wait for it: as many tokens as make all of them faster, each as much as the others.
        pytest.param([Sequence(SURE)], 2, MANY, [8], id="much for one of two"),
        pytest.param([Sequence(SURE)], 8, MANY, [0], id="not for one of many"),
        pytest.param(
            [Sequence(SURE[:4]) for _ in range(8)], 8, MANY, [4] * 8, id="some for all of many"
        ),
        pytest.param(
            [Sequence((0.1, 0.01)), Sequence((0.9, 0.8))], 2, MANY, [0, 2], id="the likelier"
        ),
        pytest.param([Sequence(SURE)], 1, 5, [4], id="as much as a step reads"),
        pytest.param([Sequence(SURE)] * 2, 2, 0, [0, 0], id="no room"),
        pytest.param(
            [Sequence((0.9, 0.8, 0.7)), Sequence((0.95, 0.5))], 2, 5, [2, 1], id="of both"
        ),
    ],
)
def test_the_likeliest_are_proposed_where_there_is_room(
    candidates: list[Sequence], running: int, room: int, expected: list[int]
) -> None:
    assert counts(measured(running, 0.1), *candidates, running=running, room=room) == expected


def drafting(each: float, sequences: tuple[float, ...] = (0.8, 0.8)) -> list[int]:
    """How many tokens are proposed where a draft of one takes so much of a plain step's time."""

    def seconds(number: int, count: int) -> float:
        return PLAIN * each * number * count

    candidates = [Sequence(tuple(likely**n for n in range(1, 17))) for likely in sequences]
    chosen = measured(2, 0.02).propose(2, candidates, MANY, seconds)
    return [sum(count for item, count in chosen if item is one) for one in candidates]


def test_the_longer_drafts_take_the_fewer_are_proposed() -> None:
    found = [sum(drafting(each)) for each in (0, 0.02, 0.05, 0.1, 1)]
    assert found == sorted(found, reverse=True)
    assert (found[0] > found[1] > found[2] > 0, found[-1]) == (True, 0)


def test_drafts_for_one_sequence_do_not_take_the_time_of_two() -> None:
    assert drafting(0.08, (0.95, 0.1))[1] == 0 < drafting(0.08, (0.95, 0.1))[0]


def test_nothing_that_takes_time_is_proposed_before_a_plain_step_was_measured() -> None:
    speculator = measured(2, 0.02)
    one = [Sequence(SURE)] * 3
    assert speculator.propose(3, one, MANY, AT_ONCE)
    assert not speculator.propose(3, one, MANY, lambda _number, _count: 1e-6)


@pytest.mark.parametrize(
    ("unread", "known", "once", "room", "expected"),
    [
        pytest.param(1, 1, 0, 17, 16, id="nothing else"),
        pytest.param(1, 9, 0, 17, 8, id="what must be read again takes room"),
        pytest.param(9, 9, 0, 17, 8, id="what is read anyway too"),
        pytest.param(1, 9, 8, 17, 8, id="or what is read once"),
        pytest.param(1, 80, 0, MANY, 0, id="and time"),
        pytest.param(80, 80, 0, MANY, 16, id="which is spent anyway"),
        pytest.param(1, 80, 79, MANY, 16, id="or for later proposals, too"),
    ],
)
def test_what_must_be_read_again_counts(
    unread: int, known: int, once: int, room: int, expected: int
) -> None:
    candidate = Sequence(SURE, unread, known, once)
    assert counts(measured(1, 0.2), candidate, room=room) == [expected]


@pytest.mark.parametrize(("steps", "expected"), [(0.5, 16), (80, 0)])
def test_what_a_sequence_needs_first_counts(steps: float, expected: int) -> None:
    """As following its grammar does."""
    candidate = Sequence(SURE, preparation=PLAIN * steps)
    assert counts(measured(1, 0.02), candidate) == [expected]


@pytest.mark.parametrize(("chance", "expected"), [(0.5, 0), (0.8, 1), (1.0, 1)])
def test_what_is_read_again_where_proposals_are_wrong_counts(chance: float, expected: int) -> None:
    """By their tokens alone all of these would be worth a step that takes 1.3 times as long."""
    assert counts(measured(1, 0.3), Sequence((chance,))) == [expected]


def cost(*steps: tuple[int, float]) -> StepCost:
    """Measured by steps with so many further tokens, of so many plain ones' times."""
    found = StepCost(1)
    for further, times in ((0, 1.0), *steps):
        found.note(1, further, PLAIN * times)
    return found


def test_costs_follow_what_was_measured() -> None:
    assert [cost().of(further) for further in (0, 1)] == [1, FEW]
    steps = [(further, 1.5 + 0.1 * further) for further in (2, 8, 4, 16)] * 50
    found = cost(*steps)
    assert found.of(0) == 1
    expected = [1.5 + 0.1 * further for further in (1, 4, 12, 32)]
    assert [found.of(further) for further in (1, 4, 12, 32)] == pytest.approx(expected, rel=0.01)


def test_a_step_is_never_faster_than_a_plain_one() -> None:
    assert cost(*[(1, 1.0), (16, 0.5)] * 50).of(16) == 1


def test_what_the_plain_step_behind_it_takes_longer_counts_for_a_step() -> None:
    steps = [(further, 1 + 0.1 * further) for further in (2, 8, 4, 16)] * 50
    quick = cost(*(item for step in steps for item in (step, (0, 1.0))))
    slow = cost(*(item for step in steps for item in (step, (0, 1.5))))
    again = cost(*(item for step in steps for item in (step, (0, 1.5), (0, 1.0))))

    assert [quick.of(further) for further in (2, 8)] == pytest.approx([1.2, 1.8], rel=0.01)
    # Those that follow are plain again.
    for found in (slow, again):
        assert [found.of(further) for further in (2, 8)] == pytest.approx([1.7, 2.3], rel=0.01)


@pytest.mark.parametrize("outlier", [(4, 1000.0), (0, 1000.0)])
def test_what_was_held_up_by_something_else_counts_for_little(outlier: tuple[int, float]) -> None:
    steps = [(4, 1.4), (8, 1.8)] * 50
    held_up = cost(*steps, outlier)
    usual = cost(*steps)
    assert usual.of(8) < held_up.of(8) < USUAL * usual.of(8)


def test_what_was_slow_is_tried_again_some_time() -> None:
    slow = [(4, 8.0), (0, 1.0), (0, 1.0)] * 50
    assert cost(*slow).of(4) > 2
    assert cost(*slow, *[(0, 1.0)] * 5000).of(4) == pytest.approx(cost().of(4), rel=0.05)
