"""The same request with the same seeds, on a model with the precision that users have."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.prompt import Prompt
from tests.effort import scaled
from tests.engine.conftest import Watched, spec
from tests.engine.subject import END, TOKENIZER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PROMPT = "<|im_start|>user\nRepeat: red 🎉 grün<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture
async def default() -> AsyncIterator[Watched]:
    watched = Watched(spec("models/demo", properties={}, end_tokens=(END,)))
    watched.engine.start()
    await watched.until(ModelState.READY)
    yield watched
    await watched.engine.close()


async def answers(watched: Watched, seed: int) -> list[tuple[int, ...]]:
    prompt = tuple(TOKENIZER.encode(PROMPT))
    requests = [
        GenerationRequest(
            Prompt(prompt),
            max_tokens=40,
            sampling=Sampling(temperature=1.5, top_k=500, seed=seed + choice),
            ignore_eos=True,
        )
        for choice in range(3)
    ]
    tokens: dict[int, list[int]] = defaultdict(list)
    with watched.engine.generate(requests) as generation:
        async for piece in generation:
            tokens[piece.index] += piece.tokens
    return [tuple(tokens[index]) for index in range(3)]


@pytest.mark.slow
async def test_the_choices_of_a_request_are_the_same_again(default: Watched) -> None:
    # What the first finds is cached for the others.
    await answers(default, 0)
    for seed in range(scaled(8)):
        first = await answers(default, seed)
        assert len(set(first)) > 1
        for _ in range(4):
            assert await answers(default, seed) == first
