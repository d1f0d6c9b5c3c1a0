"""A step that throws costs nobody but who made it throw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.engine.contract.messages import BROKEN
from ovchat_server.engine.scheduling.kv_pool import KvPool
from ovchat_server.engine.scheduling.scheduler import Scheduler
from ovchat_server.engine.scheduling.step_budget import StepBudget
from tests.sequence_requests import changed
from tests.unit.scheduler_tools import BLOCK, Run, alone, search, sequence

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_messages import SequenceRequest

ALWAYS = 1000


@pytest.mark.parametrize("offender", [1, 3, 5])
def test_who_makes_every_step_throw_fails_alone(offender: int) -> None:
    run = Run(64)
    requests = [sequence(i, 4, 8) for i in range(1, 6)]
    run.pipeline.faults = {offender: ALWAYS}
    run.add(*requests)
    load = run.finish_all()

    run.right(*(request for request in requests if request.id != offender))
    assert run.finish[offender] == BROKEN
    assert run.tokens[offender] == []
    assert (load.running_requests, load.used_kv_blocks) == (0, 0)


def test_a_fault_in_the_middle_is_not_seen_in_any_answer() -> None:
    run = Run(64)
    requests = [sequence(1, 4, 8), sequence(2, 4, 8), search(3, 4, 8, 2)]
    run.add(*requests)
    run.step()
    run.step()
    run.pipeline.faults = {2: 1}
    run.finish_all()

    run.right(*requests)
    assert sorted(run.trials) == [1, 2, 3]


def test_suspects_run_alone_until_they_come_to_a_token() -> None:
    run = Run(64)
    requests = [sequence(i, 4, 8) for i in (1, 2, 3)]
    run.add(*requests)
    run.pipeline.faults = {2: 1}
    run.step()
    run.add(newcomer := sequence(4, 4, 8))

    together = []
    while run.scheduler.busy:
        before = len(run.pipeline.added)
        run.step()
        together.append(run.pipeline.added[before:])
    # One step for each, and one in which it leaves for the next.
    assert together[:6] == [[1], [], [2], [], [3], [1, 2, 4]]
    assert run.trials == [1, 2, 3]
    run.right(*requests, newcomer)


def test_who_breaks_later_is_found_though_it_came_to_tokens_before() -> None:
    run = Run(64)
    requests = [sequence(i, 4, 12) for i in (1, 2, 3)]
    run.pipeline.broken_at = {1: 7}
    run.add(*requests)
    run.finish_all()

    run.right(*requests[1:])
    assert run.finish[1] == BROKEN
    assert run.tokens[1] == alone(requests[0])[0][:7]


def test_what_was_said_elsewhere_is_gone_on_with() -> None:
    whole = sequence(1, 4, 12)
    said, _ = alone(whole)
    run = Run(64)
    run.add(changed(whole, generated=tuple(said[:5]), suspect=True))
    run.finish_all()

    assert run.tokens[1] == said[5:]
    assert run.trials == [1]
    assert run.admitted == []


def test_a_grammar_that_was_followed_elsewhere_is_followed_from_its_beginning() -> None:
    whole = sequence(1, 4, 12, grammar="g")
    said, _ = alone(whole)
    run = Run(64)
    run.add(changed(whole, generated=tuple(said[:5])))
    run.finish_all()

    assert run.tokens[1] == said[5:]
    assert [request.generation for request in run.pipeline.requests[1]] == [whole.generation]


def test_an_answer_with_a_grammar_that_cannot_be_repeated_ends_where_it_was() -> None:
    whole = sequence(1, 4, 12, grammar="g")
    said, _ = alone(whole)
    run = Run(64)
    run.add(changed(whole, generated=(*said[:4], said[4] + 1)))
    run.finish_all()

    assert run.finish == {1: "length"}
    assert run.tokens[1] == []


@pytest.mark.parametrize(
    "fields", [{"grammar": "g"}, {"grammar": "g", "reserve_max_tokens": True}, {}]
)
def test_those_that_a_fault_left_go_on_whatever_keeps_their_places(fields: dict[str, Any]) -> None:
    run = Run(64)
    requests = [sequence(i, 4, 8, **fields) for i in (1, 2, 3)]
    run.pipeline.faults = {2: 1}
    run.patience = 20
    run.add(*requests)
    run.finish_all()
    run.right(*requests)


def test_those_with_grammars_that_a_death_left_go_on() -> None:
    run = Run(64)
    requests = [sequence(i, 4, 8, grammar="g") for i in (1, 2)]
    run.patience = 20
    run.add(*(changed(request, suspect=True) for request in requests))
    run.finish_all()
    run.right(*requests)


def late(kind: str, identifier: int) -> SequenceRequest:
    """What always breaks at its 25th token."""
    if kind == "search":
        return search(identifier, 4, 40, 2)
    return sequence(identifier, 4, 40, grammar="g" if kind == "grammar" else "")


@pytest.mark.parametrize("kind", ["plain", "grammar", "search"])
def test_who_breaks_late_is_found_beside_steady_newcomers(kind: str) -> None:
    run = Run(64)
    run.pipeline.broken_at = {1: 25}
    run.add(late(kind, 1))
    for step in range(600):
        if step % 20 == 0:
            run.add(sequence(2 + step, 4, 30))
        run.step()
    assert run.finish[1] == BROKEN
    assert {reason for identifier, reason in run.finish.items() if identifier != 1} == {"length"}


@pytest.mark.parametrize("kind", ["plain", "grammar", "search"])
def test_two_that_break_late_are_both_found(kind: str) -> None:
    run = Run(64)
    run.pipeline.broken_at = {1: 25, 2: 25}
    run.patience = 20
    run.add(late(kind, 1), late(kind, 2))
    run.finish_all()
    assert run.finish == {1: BROKEN, 2: BROKEN}


def test_a_trial_ends_when_its_suspect_comes_further() -> None:
    told: list[int | None] = []
    run = Run(64)
    run.scheduler = Scheduler(
        run.pipeline, KvPool(64, BLOCK), StepBudget(0, 1000), told.append, lambda _: True
    )
    asked = sequence(1, 4, 8), search(2, 4, 8, 2)
    run.add(*(changed(item, suspect=True, ran=3) for item in asked))
    run.step()
    assert told == [1, None]
    while told[-1] is None:
        run.step()
    for _ in range(2):
        run.step()
        assert told == [1, None, 2]
    # It ran for three steps before, and now for four.
    run.step()
    assert told == [1, None, 2, None]
    run.finish_all()
    run.right(*asked)


def test_who_runs_for_the_first_time_is_told_once() -> None:
    run = Run(12)
    run.add(*(sequence(i, 6, 20) for i in (1, 2, 3)))
    run.pipeline.faults = {1: 1}
    load = run.finish_all()

    assert load.preemptions > 0
    assert sorted(run.admitted) == [1, 2, 3]


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=8),
    st.dictionaries(st.integers(0, 7), st.integers(1, 2), max_size=3),
    st.integers(10, 40),
    st.sampled_from([8, 1000]),
)
def test_rare_faults_cost_nobody_an_answer_but_those_they_follow(
    wanted: list[tuple[int, int]], faults: dict[int, int], total: int, budget: int
) -> None:
    run = Run(total, StepBudget(0, budget))
    requests = [sequence(i, prompt, answer) for i, (prompt, answer) in enumerate(wanted)]
    run.pipeline.faults = dict(faults)
    run.patience += 2 * sum(faults.values())
    run.add(*requests)
    load = run.finish_all()

    right = [request for request in requests if run.finish[request.id] != BROKEN]
    run.right(*right)
    assert {request.id for request in requests} - {item.id for item in right} <= faults.keys()
    assert load.used_kv_blocks == 0


def test_a_step_that_came_to_no_logits_is_not_gone_on_from() -> None:
    run = Run(64)
    run.add(sequence(1, 4, 8))
    run.pipeline.computed = False
    run.pipeline.faults = {1: 1}

    with pytest.raises(RuntimeError, match="a fault"):
        run.step()
