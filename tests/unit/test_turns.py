"""Clients take turns, and a turn that is given up is nobody's."""

from __future__ import annotations

import asyncio

from ovchat_server.engine.client.turns import Turns


def turns_of(turns: Turns[str], *clients: str) -> list[asyncio.Future[str]]:
    """A turn for each."""
    futures = [asyncio.get_running_loop().create_future() for _ in clients]
    for client, future in zip(clients, futures, strict=True):
        turns.enter(client, future)
    return futures


def order(turns: Turns[str], waiting: list[asyncio.Future[str]]) -> list[int]:
    """In what order they come, each ended before the next."""
    found = []
    while came := [turn for turn in waiting if turn.done() and not turn.cancelled()]:
        [turn] = came
        found.append(waiting.index(turn))
        waiting[found[-1]] = asyncio.get_running_loop().create_future()
        turns.end()
    return found


async def test_clients_take_turns_one_at_a_time() -> None:
    turns = Turns("here")
    assert order(turns, turns_of(turns, "a", "a", "a", "b", "b", "c")) == [0, 1, 3, 5, 2, 4]
    assert order(turns, turns_of(turns, "d")) == [0]


async def test_a_turn_of_several_clients_comes_with_the_first_of_them() -> None:
    turns = Turns("here")
    waiting = turns_of(turns, "a", "a", "a", "a")
    turns.enter("b", waiting[3])
    assert order(turns, waiting) == [0, 1, 3, 2]


async def test_what_is_given_up_is_passed_over() -> None:
    turns = Turns("here")
    first, second, third, fourth = turns_of(turns, "a", "a", "b", "b")
    third.cancel()
    second.cancel()
    assert first.result() == "here"
    turns.end()
    assert fourth.result() == "here"
    turns.end()
    assert order(turns, turns_of(turns, "a")) == [0]


async def test_a_client_moves_with_all_that_waits_and_others_stay() -> None:
    here, there = Turns("here"), Turns("there")
    first, moved, stays = turns_of(here, "a", "a", "b")
    here.move("a", there)
    assert (first.result(), moved.result(), stays.done()) == ("here", "there", False)
    here.end()
    assert stays.result() == "here"
