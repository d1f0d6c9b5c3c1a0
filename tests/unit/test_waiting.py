"""Whose turn it is, of those that wait for a place."""

from __future__ import annotations

from tests.unit.scheduler_tools import Run, sequence


def order(run: Run) -> list[int]:
    run.finish_all()
    return list(dict.fromkeys(run.pipeline.added))


def narrow() -> Run:
    """Room for one sequence of 4 tokens that says 6 at a time."""
    return Run(5)


def test_clients_take_turns_however_much_one_of_them_asks() -> None:
    run = Run(9)
    run.add(*(sequence(i, 4, 6, client="greedy") for i in range(1, 6)))
    run.add(*(sequence(i, 4, 6, client="modest") for i in (6, 7)))

    assert order(run)[:4] == [1, 6, 2, 7]


def test_lower_priorities_go_first() -> None:
    run = narrow()
    run.add(sequence(1, 4, 6), sequence(2, 4, 6, priority=5), sequence(3, 4, 6, priority=-1))

    assert order(run) == [3, 1, 2]


def test_one_client_is_served_in_the_order_of_coming() -> None:
    run = narrow()
    run.add(*(sequence(i, 4, 6, client="a") for i in range(1, 6)))

    assert order(run) == [1, 2, 3, 4, 5]


def test_who_ran_before_goes_before_any_priority() -> None:
    run = Run(12)
    run.add(*(sequence(i, 6, 20) for i in (1, 2, 3)))
    while not run.step().preemptions:
        pass
    run.add(sequence(4, 6, 4, priority=-9))
    run.finish_all()

    added = run.pipeline.added
    assert added.index(3, added.index(3) + 1) < added.index(4)
