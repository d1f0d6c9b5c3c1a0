"""Vision models get text as rows of embeddings, and say of it what they would say of tokens."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.generation import BeamSearch, GenerationRequest, Sampling
from ovchat_server.engine.contract.prompt import Prompt
from tests.branches import Branches
from tests.conftest import ROOT
from tests.engine.conftest import (
    Sequence,
    Watched,
    collect,
    collect_all,
    engine,
    loaded,
    request,
    spec,
)
from tests.reference_rules import ReferenceModel
from tests.successor import successor_text
from tests.vision_models import AXES, as_vision_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MODELS = ROOT / "models"
# As the demo model's template writes it.
QUESTION = (1528, 288, 198, 913, 1529, 198, 1528, 285, 198)
LONG = tuple(random.Random(1).choices(range(1500), k=300))
SAMPLED = Sampling(temperature=1.5, top_k=50, seed=7)
REQUESTS = {
    "greedy": GenerationRequest(Prompt(QUESTION), 20, ignore_eos=True, logprobs=True),
    "sampled": GenerationRequest(Prompt(QUESTION), 20, SAMPLED, ignore_eos=True),
    "slices": GenerationRequest(Prompt(LONG), 20, ignore_eos=True, logprobs=True),
    "the same, with its beginning cached": GenerationRequest(
        Prompt((*LONG, 7)), 20, ignore_eos=True, logprobs=True
    ),
    "likely tokens": GenerationRequest(
        Prompt(QUESTION), 20, ignore_eos=True, logprobs=True, top_logprobs=3
    ),
    "repetition": GenerationRequest(
        Prompt(QUESTION), 20, Sampling(repetition_penalty=1.7), ignore_eos=True
    ),
    "presence and bias": GenerationRequest(
        Prompt(QUESTION), 20, Sampling(presence_penalty=1, bias=((220, 2.0),)), ignore_eos=True
    ),
    "grammar": GenerationRequest(
        Prompt(QUESTION),
        20,
        grammar='{"type":"structural_tag","format":{"type":"regex","pattern":"[a-z]{12}"}}',
    ),
    "beams": GenerationRequest(Prompt(QUESTION), 20, beam_search=BeamSearch(3, 2)),
}


@pytest.fixture(scope="module")
async def of_tokens() -> AsyncIterator[Watched]:
    async with engine(path="models/demo", name="demo", end_tokens=()) as watched:
        yield watched


@pytest.fixture(scope="module", params=[1, AXES], ids=["plain positions", "three positions"])
async def of_rows(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Watched]:
    folder = tmp_path_factory.mktemp("models") / "sees"
    path = as_vision_model(MODELS / "demo", folder, axes=request.param)
    fields = {"max_num_batched_tokens": 64, "end_tokens": ()}
    async with loaded(Watched(spec(str(path), **fields))) as watched:
        yield watched


def same(one: Sequence, other: Sequence) -> None:
    assert (one.tokens, one.finish) == (other.tokens, other.finish)
    assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3)
    for mine, theirs in zip(one.alternatives, other.alternatives, strict=True):
        assert dict(mine) == pytest.approx(dict(theirs), abs=1e-3)


@pytest.mark.parametrize("name", REQUESTS)
async def test_an_answer_is_that_of_the_model_that_gets_tokens(
    of_tokens: Watched, of_rows: Watched, name: str
) -> None:
    asked = [REQUESTS[name]]
    expected = await collect_all(of_tokens.engine.generate(asked))
    told = await collect_all(of_rows.engine.generate(asked))
    for one, other in zip(told, expected, strict=True):
        same(one, other)


async def test_what_the_prefix_cache_had_is_known(of_rows: Watched) -> None:
    prompt = Prompt(tuple(random.Random(2).choices(range(1500), k=200)))
    asked = [GenerationRequest(prompt, 2, ignore_eos=True)]
    [first] = await collect_all(of_rows.engine.generate(asked))
    [again] = await collect_all(of_rows.engine.generate(asked))
    assert (first.cached, again.cached) == ([0], [6 * 32])
    assert again.tokens == first.tokens


async def test_conversations_that_part_anywhere_are_told_apart(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = as_vision_model(MODELS / "demo", tmp_path_factory.mktemp("models") / "sees", axes=AXES)
    fields = {"max_num_batched_tokens": 64, "context_length": 512, "kv_blocks": 256}
    async with loaded(Watched(spec(str(path), end_tokens=(), **fields))) as watched:
        reference = ReferenceModel(MODELS / "demo")
        branches = Branches(watched, reference, random.Random(1), scores=False)
        await branches.run(3)
    assert branches.wrong == []
    assert branches.checked > 15


async def test_nobody_gets_anothers_tokens_when_room_is_short_and_the_engine_dies(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = as_vision_model(MODELS / "successor", tmp_path_factory.mktemp("models") / "sees")
    starts = "abcdefgh"
    async with loaded(Watched(spec(str(path), kv_blocks=24))) as watched:
        streams = [watched.engine.generate([request(start, 200)]) for start in starts]
        answers = [asyncio.create_task(collect(stream)) for stream in streams]
        await watched.until_load(lambda load: load.preemptions > 0)
        watched.kill()
        await watched.until(ModelState.UNAVAILABLE)
        told = await asyncio.gather(*answers)
        await watched.idle()
    assert [text for text, _ in told] == [successor_text(start, 200) for start in starts]
