"""With proposals a step may give several tokens, and all are those that come without."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from typing import TYPE_CHECKING

import pytest

from ovchat_server.engine.contract.generation import GenerationRequest
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.contract.speculation import Speculation
from tests.effort import scaled
from tests.engine.conftest import Sequence, Watched, collect_all, engine, loaded, request, spec
from tests.engine.test_control_in_batches import END, VOCABULARY, alone, given_up, mixed, same
from tests.random_model import save_random_model
from tests.successor import FIRST, LAST, successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# A step holds what is proposed to few sequences at once, and the pool no more than a few.
EDGE = {"kv_blocks": 24, "max_num_batched_tokens": 96}
AT_ONCE, GIVEN_UP = 60, 0.2


def quoting(chance: random.Random, length: int) -> str:
    """A prompt that holds pieces of what the model says after it, and others that mislead."""
    pieces = []
    while sum(map(len, pieces)) < length:
        start = chance.choice([FIRST, chance.randint(FIRST, LAST)])
        pieces.append(successor_text(chr(start), chance.choice([1, 2, 5, 20, 60])))
    return "".join(pieces)[:length]


def proposing(chance: random.Random, asked: GenerationRequest) -> GenerationRequest:
    least = 0 if asked.beam_search else 1
    speculation = Speculation(least * chance.choice([1, 2, 5, 20, 32]), chance.choice([1, 3, 9]))
    return dataclasses.replace(asked, speculation=speculation)


async def test_all_tokens_are_right_where_steps_and_pool_are_full() -> None:
    """Requests of all lengths at once, some of them given up: each token is known."""
    chance, room = random.Random(8), asyncio.Semaphore(AT_ONCE)
    accepted = rejected = 0

    async def one(watched: Watched) -> None:
        nonlocal accepted, rejected
        text, length = quoting(chance, chance.randint(1, 250)), chance.randint(1, 150)
        patience = chance.randint(0, 20) if chance.random() < GIVEN_UP else length
        asked = proposing(chance, request(text, length, ignore_eos=True))
        tokens: list[int] = []
        async with room:
            with watched.engine.generate([asked]) as generation:
                async for piece in generation:
                    tokens += piece.tokens
                    accepted, rejected = accepted + piece.accepted, rejected + piece.rejected
                    if len(tokens) > patience:
                        break
        wanted = successor_text(text, length)
        assert bytes(tokens).decode() == wanted[: len(tokens)]
        assert len(tokens) == length or len(tokens) > patience

    async with engine(**EDGE, speculation="lookup") as watched:
        await asyncio.gather(*(one(watched) for _ in range(scaled(600))))
        load = watched.load
        await watched.idle()
    assert load.preemptions > 0
    assert min(accepted, rejected) > 0
