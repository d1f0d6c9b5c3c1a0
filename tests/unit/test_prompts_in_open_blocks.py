"""Prompts that go on in the same block of an earlier text begin one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sequence_requests import sequence_request
from tests.unit.scheduler_tools import BLOCK, Run, search, sequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation_messages import SequenceRequest

# It ends inside of its second block.
TEXT = tuple(range(10, 10 + BLOCK + 1))
# More tokens, up to the end of that block.
REST = BLOCK - 1


def after(text: Sequence[int]) -> Run:
    """Where this was read, and nothing runs."""
    run = Run(200)
    run.add(sequence_request(1, tuple(text), 1, ignore_eos=True))
    run.finish_all()
    return run


def going_on(identifier: int, text: Sequence[int], more: int) -> SequenceRequest:
    own = range(100 * identifier, 100 * identifier + more)
    return sequence_request(identifier, (*text, *own), 20, ignore_eos=True)


def beginnings(run: Run, *requests: SequenceRequest) -> list[int]:
    """In which step from now on each of them begins."""
    run.add(*requests)
    steps: dict[int, int] = {}
    for step in range(1, 20):
        run.step()
        for identifier in run.pipeline.added:
            steps.setdefault(identifier, step)
    return [steps[request.id] for request in requests]


@pytest.mark.parametrize(
    ("more", "steps"),
    [
        pytest.param(1, [1, 2, 3], id="inside"),
        pytest.param(REST, [1, 3, 5], id="to its end"),
        pytest.param(REST + 1, [1, 2, 3], id="beyond"),
        pytest.param(REST + BLOCK, [1, 3, 5], id="to the end of the next"),
    ],
)
def test_who_fills_the_block_keeps_it_for_one_step_more(more: int, steps: list[int]) -> None:
    run = after(TEXT)
    assert beginnings(run, *(going_on(number, TEXT, more) for number in (2, 3, 4))) == steps


def test_others_begin_meanwhile() -> None:
    run = after(TEXT)
    mine, theirs, other = going_on(2, TEXT, 1), going_on(3, TEXT, 1), sequence(4, 6, 5)
    assert beginnings(run, mine, theirs, other) == [1, 2, 1]


@pytest.mark.parametrize(("more", "step"), [(1, 5), (REST, 6)])
def test_a_prompt_that_takes_several_steps_keeps_the_block(more: int, step: int) -> None:
    run = after(TEXT)
    run.pipeline.slow[2] = 3
    assert beginnings(run, going_on(2, TEXT, more), going_on(3, TEXT, 1)) == [1, step]


def test_so_does_that_of_a_search() -> None:
    run = after(TEXT)
    searching = search(2, 4, 12, 2)
    first = sequence_request(
        2,
        (*TEXT, *searching.generation.prompt.tokens),
        12,
        beam_search=searching.generation.beam_search,
        ignore_eos=True,
    )
    run.pipeline.slow[2] = 3
    assert beginnings(run, first, going_on(3, TEXT, 1)) == [1, 5]


@pytest.mark.parametrize("how", ["cancelled", "preempted"])
def test_who_is_given_up_while_its_prompt_is_read_leaves_when_it_was(how: str) -> None:
    run = after(TEXT)
    run.pipeline.slow[2] = 2
    run.add(given_up := going_on(2, TEXT, 1), other := going_on(3, TEXT, 1))
    run.step()
    [handle] = run.pipeline.inside
    if how == "cancelled":
        run.scheduler.cancel(2)
    else:
        run.scheduler._preempt_one(run.scheduler._running[0])

    for _ in range(2):
        assert run.step().used_kv_blocks > 0
        assert run.pipeline.added == [1, 2]
    assert handle.cancelled
    # Which frees its blocks.
    run.step()
    run.step()

    assert 3 in run.pipeline.added
    run.finish_all()
    run.right(other, *([given_up] if how == "preempted" else []))


def test_one_that_the_pipeline_drops_needs_no_cancelling() -> None:
    run = after(TEXT)
    run.pipeline.slow[2] = 30
    run.add(going_on(2, TEXT, 1))
    run.step()
    [handle] = run.pipeline.inside
    run.scheduler.cancel(2)
    handle.gave_up = True

    assert run.step().used_kv_blocks == 0
    assert not handle.cancelled


def test_one_that_ended_as_it_was_read_needs_no_cancelling() -> None:
    run = after(TEXT)
    run.pipeline.slow[2] = 1
    run.add(sequence_request(2, (*TEXT, 200), 1, ignore_eos=True))
    run.step()
    [handle] = run.pipeline.inside
    run.scheduler.cancel(2)

    assert run.finish_all().used_kv_blocks == 0
    assert not handle.cancelled


@pytest.mark.parametrize("prompt", [BLOCK, BLOCK + 1, 2 * BLOCK - 1])
def test_whatever_a_search_found_they_go_on_from_it_one_by_one(prompt: int) -> None:
    run = Run(200)
    run.add(searching := search(1, prompt, 6, 3))
    run.finish_all()
    [best, *_] = run.answers[1]

    requests = [
        going_on(number, (*searching.generation.prompt.tokens, *best), 1) for number in (2, 3, 4)
    ]

    first, second, third = beginnings(run, *requests)
    assert first < second < third
