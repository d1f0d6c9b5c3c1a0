"""Grammars of one caller that are slow to follow do not stop the streams of others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.attacks.callers import Callers, calling
from tests.grammars import ambiguous

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ALONE, BESIDE = 4, 20
STREAM = {"model": "demo", "prompt": "a", "max_tokens": 900, "ignore_eos": True, "stream": True}
# The token "a", so that the answer goes on.
BIAS = {"64": 100}
NAMES = count()


def chat() -> dict[str, Any]:
    """One whose grammar nobody has asked for."""
    grammar = ambiguous(f"s{next(NAMES)}")
    messages = [{"role": "user", "content": "Hello"}]
    fields = {"guided_grammar": grammar, "logit_bias": BIAS, "max_tokens": 900}
    return {"model": "demo", "messages": messages, **fields}


async def events(callers: Callers, seconds: int) -> list[int]:
    """How many events the harmed one gets, second by second, from streams one after the other."""
    found: list[float] = []

    async def read() -> None:
        while True:
            async with callers.harmed.stream("POST", "/v3/completions", json=STREAM) as response:
                assert response.status_code == 200
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        found.append(time.monotonic())  # noqa: PERF401  it is given up

    reading = asyncio.create_task(read())
    await asyncio.wait([reading], timeout=seconds)
    assert not reading.done(), reading.exception()
    reading.cancel()
    await asyncio.wait([reading])
    each = Counter(int(moment - found[0]) for moment in found)
    return [each[second] for second in range(seconds)]


async def attacked(callers: Callers, width: int) -> tuple[list[int], Counter[tuple[int, str]]]:
    """The harmed one's events beside so many at once, and what came of those."""
    outcomes: Counter[tuple[int, str]] = Counter()

    async def attack() -> None:
        while True:
            response = await callers.attacker.post("/v3/chat/completions", json=chat())
            error = response.json().get("error", {})
            outcomes[response.status_code, str(error.get("message"))] += 1

    attacks = [asyncio.create_task(attack()) for _ in range(width)]
    try:
        each = await events(callers, BESIDE)
    finally:
        for task in attacks:
            task.cancel()
        await asyncio.wait(attacks)
    return each, outcomes


@pytest.mark.parametrize("width", [1, 16])
async def test_streams_go_on_beside_them(tmp_path: Path, width: int) -> None:
    unbounded, bounded = tmp_path / "unbounded", tmp_path / "bounded"
    for folder in (unbounded, bounded):
        folder.mkdir()
    async with calling(unbounded, max_mask_seconds=0) as callers:
        print("alone:", await events(callers, ALONE))
        harm, outcomes = await attacked(callers, width)
        print(f"beside {width} without a bound:", harm)
        assert not outcomes
    async with calling(bounded) as callers:
        print("alone:", await events(callers, ALONE))
        each, outcomes = await attacked(callers, width)
        print(f"beside {width}:", each)
        print("theirs:", outcomes)
    assert {status for status, _ in outcomes} <= {400, 429}
    refused = [message for status, message in outcomes if status == 400]
    assert refused
    assert all(message.startswith("guided_grammar cannot be enforced: ") for message in refused)
    # Forty times as many, where this was measured.
    assert sum(each[-10:]) > 3 * sum(harm[-10:])
