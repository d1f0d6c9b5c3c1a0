"""Whose grammar is checked next, and how many of one client may wait; without any process."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, cast

import pytest

from ovchat_server.domain.errors import OverloadedError, UnavailableError
from ovchat_server.engine.client import grammar_process
from ovchat_server.engine.client.grammar_lane import Verdict
from ovchat_server.engine.client.grammar_process import GrammarProcess
from ovchat_server.engine.client.lately_slow import SLOW_FOR
from ovchat_server.engine.contract.engine import Caller

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_spec import GenerationSpec

A, B = Caller("a"), Caller("b")


class Held(GrammarProcess):
    """Compiles nothing, when it is told to."""

    def __init__(self) -> None:
        super().__init__(cast("GenerationSpec", None), lambda: self.now)
        self.now = 0.0
        self.compiled: list[str] = []
        self.slow: list[str] = []
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on_slowly = asyncio.Event()
        self._lane.compile = partial(self._compile, self.compiled, self.go_on)  # type: ignore[method-assign]
        self._slow_lane.compile = partial(self._compile, self.slow, self.go_on_slowly)  # type: ignore[method-assign]

    async def _compile(self, compiled: list[str], go_on: asyncio.Event, grammar: str) -> Verdict:
        compiled.append(grammar)
        self.began.set()
        await go_on.wait()
        return Verdict("slow" if "slow" in grammar else "", too_slow="slow" in grammar)


async def checking(held: Held, *asked: tuple[str, Caller]) -> list[asyncio.Task[str]]:
    """Checks that wait, the first one begun."""
    tasks = [asyncio.create_task(held.check(*ask)) for ask in asked]
    await held.began.wait()
    return tasks


async def test_clients_whose_grammars_wait_take_turns() -> None:
    held = Held()
    tasks = await checking(held, *((f"a{n}", A) for n in range(3)), ("b0", B), ("b1", B))
    held.go_on.set()
    await asyncio.gather(*tasks)
    assert held.compiled == ["a0", "a1", "b0", "a2", "b1"]


async def test_a_grammar_that_another_client_asks_for_too_has_its_turn_with_either() -> None:
    held = Held()
    tasks = await checking(held, *((f"a{n}", A) for n in range(4)), ("a3", B))
    held.go_on.set()
    await asyncio.gather(*tasks)
    assert held.compiled == ["a0", "a1", "a3", "a2"]


async def test_one_client_may_have_so_many_waiting_and_others_are_not_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grammar_process, "MAX_WAITING_OF_CLIENT", 2)
    monkeypatch.setattr(grammar_process, "MAX_WAITING", 4)
    held = Held()
    tasks = await checking(held, ("a0", A), ("a1", A))
    with pytest.raises(OverloadedError, match="2 new grammars of yours are waiting") as refused:
        await held.check("a2", A)
    assert refused.value.retry_after
    # Those that wait anyway count once.
    tasks += await checking(held, ("a1", A), ("b0", B), ("b1", B))
    await asyncio.sleep(0)
    with pytest.raises(UnavailableError):
        await held.check("c0", Caller("c"))
    held.go_on.set()
    assert await asyncio.gather(*tasks) == [""] * 5
    assert await held.check("a2", A) == ""


async def test_a_check_that_is_given_up_before_its_turn_holds_up_nobody() -> None:
    held = Held()
    begun, given_up = await checking(held, ("a0", A), ("a1", A))
    given_up.cancel()
    await asyncio.wait([given_up])
    held.go_on.set()
    assert await held.check("b0", B) == await begun == ""
    assert held.compiled == ["a0", "b0"]


async def test_grammars_of_a_client_of_whom_one_was_slow_are_checked_apart_for_a_while() -> None:
    held = Held()
    slow = await checking(held, ("slow 0", A), ("slow 1", A), ("a0", A), ("shared", A))
    held.go_on.set()
    assert await slow[0] == "slow"
    # What waited has moved; what another waits for, too, has its turn with either.
    assert await held.check("b0", B) == await held.check("shared", B) == await slow[3] == ""
    assert (held.compiled, held.slow) == (["slow 0", "b0", "shared"], ["slow 1"])
    held.go_on_slowly.set()
    assert await slow[1] == "slow"
    assert await slow[2] == await held.check("a1", A) == ""
    assert held.slow == ["slow 1", "a0", "a1"]
    held.now = SLOW_FOR
    assert await held.check("a2", A) == ""
    assert held.compiled[-1] == "a2"


async def test_who_leaves_before_the_verdict_is_set_apart_all_the_same() -> None:
    held = Held()
    [left] = await checking(held, ("slow 0", A))
    left.cancel()
    await asyncio.wait([left])
    held.go_on.set()
    assert await held.check("b0", B) == ""
    held.go_on_slowly.set()
    assert await held.check("a0", A) == ""
    assert (held.compiled, held.slow) == (["slow 0", "b0"], ["a0"])
