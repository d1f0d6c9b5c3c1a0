"""The priority that one caller asks for takes no turn from another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.attacks.callers import Callers, Seconds, calling, timed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.slow]

CONNECTIONS = 24
# As many as were served beside one of the other's.
MANY = 1224
ASKED = 20
TEXT = {"model": "successor", "prompt": "-" * 140 + "a", "max_tokens": 20}


@pytest.fixture(scope="module")
async def callers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Callers]:
    # Room for one request at a time.
    async with calling(tmp_path_factory.mktemp("priority"), kv_blocks=8) as callers:
        yield callers


async def test_the_lowest_number_serves_nobody_first_but_its_own_callers(callers: Callers) -> None:
    served, under_way, enough = 0, asyncio.Event(), asyncio.Event()

    async def attack() -> None:
        nonlocal served
        while not enough.is_set():
            body = {**TEXT, "priority": -(2**31)}
            response = await callers.attacker.post("/v3/completions", json=body)
            assert response.status_code == 200, response.text
            served += 1
            if served >= CONNECTIONS:
                under_way.set()
            if served >= MANY:
                enough.set()

    took: list[float] = []

    async def ask() -> None:
        response = await callers.harmed.post("/v3/completions", json=TEXT)
        assert response.status_code == 200, response.text

    async def ask_all() -> None:
        for _ in range(ASKED):
            took.append(await timed(ask))  # noqa: PERF401  those so far count, too
        enough.set()

    await ask_all()
    alone = Seconds([*took])
    took.clear()
    enough.clear()
    attacks = [asyncio.create_task(attack()) for _ in range(CONNECTIONS)]
    await under_way.wait()
    before = served
    asking = asyncio.create_task(ask_all())
    await enough.wait()
    beside = served - before
    asking.cancel()
    await asyncio.wait([asking])
    await asyncio.gather(*attacks)
    print(f"alone: {alone}\nbeside {CONNECTIONS} with the lowest number: {len(took)} of {ASKED},")
    print(f"{Seconds(took) if took else 'none'}; the attacker's meanwhile: {beside}")
    # All of them, before the attacker had as many as it had beside one.
    assert len(took) == ASKED
