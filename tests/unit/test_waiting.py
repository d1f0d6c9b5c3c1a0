"""Whose turn it is, of those that wait for a place."""

from __future__ import annotations

from ovchat_server.engine.scheduling.sequence import ScheduledSequence
from ovchat_server.engine.scheduling.waiting import WaitingLine
from tests.sequence_requests import sequence_request
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


def test_the_own_priority_orders_a_clients_own_and_takes_no_turn_from_others() -> None:
    run = narrow()
    run.add(*(sequence(i, 4, 6, client="a", own_priority=-i) for i in (1, 2, 3)))
    run.add(*(sequence(i, 4, 6, client="b") for i in (4, 5)))

    assert order(run) == [3, 4, 2, 5, 1]


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


def waiting(identifier: int, client: str, priority: int = 0) -> ScheduledSequence:
    return ScheduledSequence(
        sequence_request(identifier, (1,), 1, client=client, priority=priority)
    )


def anybody(_: ScheduledSequence) -> bool:
    return True


def served(line: WaitingLine) -> int:
    """Whose turn it was."""
    item = line.next({}, anybody)
    assert item
    line.take(item)
    return item.request.id


def test_a_client_has_its_turn_however_many_new_ones_come() -> None:
    line = WaitingLine()
    line.add(waiting(1, "regular"))
    served(line)
    line.add(waiting(2, "regular"))
    for identifier in range(3, 10):
        line.add(waiting(identifier, f"new {identifier}"))
        if served(line) == 2:
            return
    raise AssertionError("it never had its turn")


def test_clients_that_are_gone_are_forgotten() -> None:
    line = WaitingLine()
    line.add(waiting(0, "slow", priority=5))
    for identifier in range(1, 100):
        line.add(waiting(identifier, f"client {identifier}"))
        served(line)
    line.add(waiting(100, "cancelled"))
    line.cancel(100)
    assert line._served.keys() == {"slow"}
