"""Which texts run together, and who goes first."""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.engine.contract.pooling_messages import PoolingInput, PoolingRequest
from ovchat_server.engine.pooling.batches import BATCH_COST, TOKEN_BYTES, Batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.engine.pooling.batches import BatchText

BUDGET = 64


def request(
    identifier: int,
    lengths: Sequence[int],
    client: str = "",
    priority: int = 0,
    *,
    suspect: bool = False,
) -> PoolingRequest:
    texts = tuple(
        PoolingInput(index, bytes(TOKEN_BYTES * length)) for index, length in enumerate(lengths)
    )
    return PoolingRequest(identifier, texts, client=client, priority=priority, suspect=suspect)


def urgent(request: PoolingRequest, own_priority: int) -> PoolingRequest:
    """To its client."""
    return msgspec.structs.replace(request, own_priority=own_priority)


def filled(*requests: PoolingRequest, budget: int = BUDGET) -> Batches:
    batches = Batches(budget)
    for one in requests:
        batches.add(one)
    return batches


def all_of(batches: Batches) -> Iterator[list[BatchText]]:
    while batches:
        yield batches.next()


def ids(batch: Sequence[BatchText]) -> list[int]:
    return [item.owner.request.id for item in batch]


def lengths_of(batch: Sequence[BatchText]) -> list[int]:
    return [len(item.text.tokens) // TOKEN_BYTES for item in batch]


@st.composite
def crowds(draw: st.DrawFn) -> list[PoolingRequest]:
    count = draw(st.integers(1, 12))
    return [
        request(
            identifier,
            draw(st.lists(st.integers(1, 100), min_size=1, max_size=8)),
            draw(st.sampled_from("abc")),
            draw(st.integers(0, 2)),
            suspect=draw(st.booleans()),
        )
        for identifier in range(1, count + 1)
    ]


@given(crowds())
def test_each_text_runs_once(crowd: list[PoolingRequest]) -> None:
    ran = Counter(
        (item.owner.request.id, item.text.index)
        for batch in all_of(filled(*crowd))
        for item in batch
    )
    assert ran == Counter((one.id, text.index) for one in crowd for text in one.inputs)


@given(crowds())
def test_a_batch_keeps_to_its_budget_and_its_padding_costs_less_than_batches(
    crowd: list[PoolingRequest],
) -> None:
    for batch in all_of(filled(*crowd)):
        lengths = lengths_of(batch)
        size = len(lengths) * max(lengths)
        assert size <= BUDGET or len(lengths) == 1
        assert size - sum(lengths) <= (len(lengths) - 1) * BATCH_COST


@given(crowds())
def test_a_request_is_known_until_its_last_text_was_taken(crowd: list[PoolingRequest]) -> None:
    batches = filled(*crowd)
    left = {one.id: len(one.inputs) for one in crowd}
    while batches:
        for item in batches.next():
            left[item.owner.request.id] -= 1
        assert len(batches) == sum(map(bool, left.values()))
    assert not any(left.values())


@given(crowds(), st.data())
def test_nothing_of_what_was_removed_runs_and_all_else_does(
    crowd: list[PoolingRequest], data: st.DataObject
) -> None:
    batches = filled(*crowd)
    removed: set[int] = set()
    ran: Counter[int] = Counter()
    while batches:
        if gone := data.draw(st.none() | st.sampled_from(crowd)):
            batches.remove(gone.id)
            removed.add(gone.id)
        if batches:
            batch = ids(batches.next())
            assert removed.isdisjoint(batch)
            ran.update(batch)
    assert all(ran[one.id] == len(one.inputs) for one in crowd if one.id not in removed)


@given(crowds())
def test_suspects_run_with_no_others_and_each_once_before_all_else(
    crowd: list[PoolingRequest],
) -> None:
    suspects = [one.id for one in crowd if one.suspect]
    batches = [{*ids(batch)} for batch in all_of(filled(*crowd))]
    assert batches[: len(suspects)] == [{suspect} for suspect in suspects]
    assert all(len(batch) == 1 for batch in batches if not batch.isdisjoint(suspects))


@given(crowds())
def test_the_best_priority_leads(crowd: list[PoolingRequest]) -> None:
    trusted = [msgspec.structs.replace(one, suspect=False) for one in crowd]
    left = {one.id: len(one.inputs) for one in trusted}
    for batch in all_of(filled(*trusted)):
        waiting = [one.priority for one in trusted if left[one.id]]
        assert batch[0].owner.request.priority == min(waiting)
        for identifier in ids(batch):
            left[identifier] -= 1


@given(st.lists(st.integers(1, 30), min_size=2, max_size=6), st.data())
def test_clients_lead_in_turn(counts: list[int], data: st.DataObject) -> None:
    """Whatever fills up: among those who wait, nobody leads twice before another has led."""
    batches = Batches(BUDGET)
    identifiers = iter(range(1, 1000))
    for number, count in enumerate(counts):
        for _ in range(count):
            lengths = data.draw(st.lists(st.sampled_from([4, 30, 60]), min_size=1, max_size=4))
            batches.add(request(next(identifiers), lengths, str(number)))
    waiting = Counter({str(number): count for number, count in enumerate(counts)})
    led: list[str] = []
    for batch in all_of(batches):
        leader = batch[0].owner.request.client
        if leader in led:
            since = led[led.index(leader) :]
            assert all(client in since for client, count in waiting.items() if count)
            led = led[led.index(leader) + 1 :]
        led.append(leader)
        for owner in {id(item.owner): item.owner for item in batch}.values():
            if not owner.left:
                waiting[owner.request.client] -= 1


def test_of_a_client_the_oldest_request_leads_with_its_next_text() -> None:
    batches = filled(request(1, [64, 63, 62]), request(2, [64]))
    assert [(ids(batch), lengths_of(batch)) for batch in all_of(batches)] == [
        ([1], [64]),
        ([1], [63]),
        ([1], [62]),
        ([2], [64]),
    ]


def test_texts_of_about_the_same_length_run_together_and_nobody_waits_for_more() -> None:
    batches = filled(request(1, [8, 60, 10]), request(2, [9, 8]))
    assert sorted(lengths_of(batches.next())) == [8, 8, 9, 10]
    assert lengths_of(batches.next()) == [60]
    assert not batches


def test_what_is_longer_than_a_batch_runs_alone() -> None:
    batches = filled(request(1, [1000, 2, 1000]), request(2, [1000]))
    assert [lengths_of(batch) for batch in all_of(batches)] == [[1000], [2], [1000], [1000]]


def test_a_batch_is_filled_by_clients_in_turn() -> None:
    crowd = [request(number, [8] * 100, str(number)) for number in range(1, 5)]
    batches = filled(*crowd)
    ran = Counter(number for _ in range(4) for number in ids(batches.next()))
    assert ran == dict.fromkeys(range(1, 5), 8)


def test_a_client_that_fills_batches_of_others_does_not_lose_its_turn_to_lead() -> None:
    short = (request(number, [8] * 9, client) for number, client in enumerate(["a", "b", "busy"]))
    batches = filled(*short)
    batches.remove(2)
    # Its oldest request now, which fits into no batch of others.
    batches.add(request(3, [60], "busy"))
    batches.add(request(4, [8] * 9, "busy"))
    assert [ids(batches.next())[0] for _ in range(3)] == [0, 1, 3]


def test_a_better_priority_fills_up_first() -> None:
    batches = filled(request(1, [8] * 9, "a", 1), request(2, [8] * 4, "b", 0))
    assert Counter(ids(batches.next())) == {2: 4, 1: 4}


def test_the_own_priority_orders_a_clients_own_and_takes_no_turn_from_others() -> None:
    batches = filled(
        *(urgent(request(number, [60], "a"), -number) for number in (1, 2, 3)),
        *(request(number, [60], "b") for number in (4, 5)),
    )
    assert [ids(batch) for batch in all_of(batches)] == [[3], [4], [2], [5], [1]]


def test_of_a_clients_texts_of_a_length_the_most_urgent_fill_a_batch() -> None:
    batches = filled(
        request(1, [9] * 9, "a"), request(2, [9] * 9, "b"), urgent(request(3, [9], "b"), -1)
    )
    assert ids(batches.next())[:3] == [1, 1, 3]
    batches.remove(3)
    batches.remove(2)
    assert {identifier for batch in all_of(batches) for identifier in ids(batch)} == {1}


def test_removing_twice_or_what_never_was_is_no_error() -> None:
    batches = filled(request(1, [8]), request(2, [8], suspect=True))
    for identifier in (1, 1, 2, 3):
        batches.remove(identifier)
    assert not batches


@pytest.mark.speed
@pytest.mark.parametrize(
    ("requests", "texts", "clients", "priorities"),
    [(1, 500_000, 1, 1), (500_000, 1, 1, 1), (500_000, 1, 500_000, 1), (500_000, 1, 9, 500_000)],
)
def test_a_step_is_fast_however_many_texts_wait(
    requests: int, texts: int, clients: int, priorities: int
) -> None:
    chance = random.Random(0)
    batches = Batches(256)
    for number in range(requests):
        lengths = chance.choices(range(1, 512), k=texts)
        batches.add(request(number, lengths, str(number % clients), number % priorities))
    seconds = []
    for _ in range(200):
        before = time.perf_counter()
        batches.next()
        seconds.append(time.perf_counter() - before)
    assert statistics.median(seconds) < 0.002
