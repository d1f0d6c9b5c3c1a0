"""Long prompts are read in pieces by the real engine, and nobody can tell but by the clock."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.prompt import Prompt
from tests.engine.conftest import Watched, collect, collect_all, request, spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.engine.contract.generation_messages import SequenceOutput
    from ovchat_server.engine.contract.messages import Report

# So little that a step never reads more than the least.
SHORT = 1e-6
LONG_PROMPT = 1000


@pytest.fixture
async def hasty() -> AsyncIterator[Watched]:
    watched = Watched(spec(max_step_seconds=SHORT, max_num_batched_tokens=2048))
    watched.engine.start()
    await watched.until(ModelState.READY)
    yield watched
    await watched.engine.close()


def words(seed: int, length: int) -> tuple[int, ...]:
    return tuple(random.Random(seed).choices(range(300, 2000), k=length))


@pytest.mark.slow
async def test_an_answer_does_not_depend_on_how_its_prompt_was_read() -> None:
    prompts = [words(seed, length) for seed, length in enumerate((64, 65, 200, 333, 640, 700))]
    requests = [GenerationRequest(Prompt(prompt), 12, ignore_eos=True) for prompt in prompts]
    seeded = Sampling(temperature=1.0, seed=7)
    requests += [
        GenerationRequest(Prompt(prompt), 12, ignore_eos=True, sampling=seeded)
        for prompt in prompts
    ]
    answers = []
    for seconds in (0.0, SHORT):
        fields = {"max_step_seconds": seconds, "max_num_batched_tokens": 2048, "kv_blocks": 512}
        watched = Watched(spec("models/demo", **fields))
        watched.engine.start()
        await watched.until(ModelState.READY)
        answers.append(
            await asyncio.gather(*(collect_all(watched.engine.generate([it])) for it in requests))
        )
        await watched.idle()
        await watched.engine.close()
    whole, pieces = answers
    assert [found.tokens for [found] in pieces] == [found.tokens for [found] in whole]
    assert {len(found.tokens) for [found] in whole} == {12}


async def test_a_short_prompt_is_answered_while_a_long_one_is_read(
    hasty: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_flight, ended = hasty.engine.supervisor.in_flight, []
    deliver = in_flight.deliver

    def noted(report: Report[SequenceOutput]) -> None:
        ended.append({output.id for output in report.outputs if output.finish})
        deliver(report)

    monkeypatch.setattr(in_flight, "deliver", noted)
    with hasty.held():
        asked = [
            hasty.engine.generate([request(text, 1)])
            for text in ("a" + "b" * LONG_PROMPT, "b" * 10, "b" * 20, "b" * 30)
        ]
    await asyncio.gather(*map(collect, asked))

    *short, long = filter(None, ended)
    assert long == {1}
    assert set().union(*short) == {2, 3, 4}
    await hasty.idle()


async def test_who_gives_up_while_its_prompt_is_read_frees_its_blocks(hasty: Watched) -> None:
    # On a busy machine it may be answered, but not to its end.
    with hasty.engine.generate([request("a" + "b" * LONG_PROMPT, 900)]):
        await hasty.until_load(lambda load: load.running_requests == 1)
    await hasty.idle()
    assert await collect(hasty.engine.generate([request("c" * LONG_PROMPT, 3)])) == (
        "def",
        "length",
    )


@pytest.mark.slow
async def test_who_dies_while_prompts_are_read_costs_nobody_an_answer(hasty: Watched) -> None:
    with hasty.held():
        asked = [hasty.engine.generate([request(letter * 600, 3)]) for letter in "bcd"]
    answers = asyncio.gather(*map(collect, asked))
    await hasty.until_load(lambda load: load.running_requests == 3)
    hasty.kill()
    assert [text for text, _ in await answers] == ["cde", "def", "efg"]
