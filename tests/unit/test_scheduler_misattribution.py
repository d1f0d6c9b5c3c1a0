"""A sequence whose tokens may not be its own ends; no other one does."""

from __future__ import annotations

import pytest

from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.scheduling.steps import Output
from tests.unit.scheduler_tools import Handle, Run, sequence


def mix_up(run: Run, identifier: int) -> Handle:
    """The running sequence of this id, which gets another one's tokens from now on."""
    [handle] = [item for item in run.pipeline.inside if item.request.id == identifier]
    handle.take = lambda: [Output([], [], MISATTRIBUTED, reason="why")]  # type: ignore[method-assign]
    return handle


@pytest.mark.parametrize("steps", [1, 3])
def test_it_ends_and_the_others_go_on(steps: int) -> None:
    run = Run(64)
    first, broken, last = (sequence(i, 5, 9) for i in (1, 2, 3))
    run.add(first, broken, last)
    for _ in range(steps):
        run.step()
    handle = mix_up(run, 2)
    run.step()

    assert handle.cancelled
    assert run.finish == {2: MISATTRIBUTED}
    assert run.reasons == {2: "why"}
    assert len(run.tokens[2]) == steps
    assert run.finish_all().used_kv_blocks == 0
    run.right(first, last)
    assert run.pipeline.added == [1, 2, 3]


def test_its_blocks_are_free_for_who_waits() -> None:
    run = Run(10)
    large, waiting = sequence(1, 20, 6), sequence(2, 20, 6)
    run.add(large, waiting)
    run.step()
    mix_up(run, 1)
    assert run.step().waiting_requests == 1

    run.finish_all()

    run.right(waiting)
    assert run.finish[1] == MISATTRIBUTED


def test_it_ends_also_where_it_repeats_what_it_said() -> None:
    run = Run(64)
    other, broken = sequence(1, 5, 9), sequence(2, 5, 9, grammar="g")
    run.add(other, broken)
    for _ in range(4):
        run.step()
    run.pipeline.faults[1] = 1
    run.step()
    while not [item for item in run.pipeline.inside if item.request.id == 2]:
        run.step()
    said = len(run.tokens[2])
    mix_up(run, 2)
    run.finish_all()

    assert run.finish[2] == MISATTRIBUTED
    assert len(run.tokens[2]) == said
    run.right(other)
