"""How likely a model finds the tokens of prompts, against the same models run without genai."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.prompt import Prompt
from tests.conftest import ROOT
from tests.engine.subject import EXACTLY, PROMPTS, Subject, same_alternatives, started
from tests.random_model import save_random_model
from tests.reference_rules import ReferenceModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from ovchat_server.engine.contract.generation import PromptScore

LENGTH = 6


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    random_model = save_random_model(tmp_path_factory.mktemp("models") / "random", 32768)
    return {"demo": ROOT / "models/demo", "random": random_model}


@pytest.fixture(scope="module", params=["random", pytest.param("demo", marks=pytest.mark.slow)])
async def subject(
    request: pytest.FixtureRequest, folders: dict[str, Path]
) -> AsyncIterator[Subject]:
    watched = await started(folders[request.param])
    yield Subject(watched, ReferenceModel(folders[request.param]))
    await watched.idle()
    await watched.engine.close()


def scored(
    prompt: Sequence[int], top: int = 0, length: int = 1, **fields: object
) -> GenerationRequest:
    return GenerationRequest(
        Prompt(tuple(prompt)),
        length,
        ignore_eos=True,
        prompt_logprobs=top,
        **fields,  # type: ignore[arg-type]
    )


def close(told: Sequence[PromptScore], expected: Sequence[PromptScore]) -> None:
    assert len(told) == len(expected)
    for one, other in zip(told, expected, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=EXACTLY)
        # Of thousands of unlikely tokens two may change places in rounding.
        assert one.rank == pytest.approx(other.rank, rel=EXACTLY)
        same_alternatives(one.alternatives, other.alternatives)


@pytest.mark.parametrize(
    "top", [1, *(pytest.param(top, marks=pytest.mark.slow) for top in (0, 20))]
)
async def test_each_token_of_a_prompt_has_the_models_own_score(subject: Subject, top: int) -> None:
    said = await subject.ask(*(scored(prompt, top) for prompt in PROMPTS))

    for prompt, item in zip(PROMPTS, said, strict=True):
        close(item.prompt, subject.reference.scores(prompt, top))


async def test_a_prompt_that_was_read_before_has_its_scores_again(subject: Subject) -> None:
    prompt = tuple(range(100, 190))
    expected = subject.reference.scores(prompt, 2)
    [plain] = await subject.ask(GenerationRequest(Prompt(prompt), LENGTH, ignore_eos=True))

    for _ in range(3):
        [item] = await subject.ask(scored(prompt, 2, LENGTH))

        close(item.prompt, expected)
        assert item.tokens == plain.tokens
    [again] = await subject.ask(GenerationRequest(Prompt(prompt), LENGTH, ignore_eos=True))
    assert (again.tokens, again.prompt) == (plain.tokens, [])


async def test_a_prompt_that_takes_many_steps_has_all_of_its_scores(subject: Subject) -> None:
    chance = random.Random(4)
    prompt = tuple(chance.choices(range(1500), k=700))
    streams = [GenerationRequest(Prompt((7, number)), 60, ignore_eos=True) for number in range(4)]

    [item, *_] = await subject.ask(scored(prompt, 3), *streams)

    assert len(item.prompt) == len(prompt) - 1
    # Each takes the reference a run.
    close(item.prompt[::100], subject.reference.scores(prompt, 3, step=100))


@pytest.mark.slow
async def test_prompts_whose_beginnings_are_evicted_have_all_of_their_scores() -> None:
    # While one is read piece by piece, nothing holds its blocks but the prefix cache.
    path = ROOT / "models/demo"
    watched = await started(path, kv_blocks=128, max_num_batched_tokens=512)
    subject = Subject(watched, ReferenceModel(path))
    prompts = [tuple(random.Random(seed).choices(range(1500), k=750)) for seed in range(24)]
    try:
        said = await subject.ask(*(scored(prompt) for prompt in prompts))

        for prompt, item in zip(prompts, said, strict=True):
            assert len(item.prompt) == len(prompt) - 1
            close(item.prompt[::250], subject.reference.scores(prompt, 0, step=250))
    finally:
        await watched.engine.close()


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(repetition_penalty=1.3),
        Sampling(bias=((20, 4.0), (21, 4.5)), presence_penalty=0.5),
    ],
)
async def test_the_answer_and_what_is_told_of_it_are_the_same(
    subject: Subject, sampling: Sampling
) -> None:
    for prompt in PROMPTS:
        answer = subject.reference.answer(prompt, sampling, LENGTH)
        for top in (0, 3):
            [item] = await subject.ask(
                scored(prompt, 1, LENGTH, sampling=sampling, logprobs=True, top_logprobs=top)
            )

            close(item.prompt, subject.reference.scores(prompt, 1))
            assert item.tokens == answer.tokens
            assert item.logprobs == pytest.approx(answer.logprobs, abs=EXACTLY)
            assert len(item.alternatives) == (LENGTH if top else 0)


@pytest.mark.slow
async def test_an_engine_that_dies_meanwhile_changes_nothing(subject: Subject) -> None:
    prompt = tuple(range(900, 990))
    expected = subject.reference.answer(prompt, Sampling(), 40)
    under_way = asyncio.create_task(subject.ask(scored(prompt, 2, 40)))
    await subject.watched.until_load(lambda load: load.running_requests > 0)
    subject.watched.kill()

    [item] = await under_way

    close(item.prompt, subject.reference.scores(prompt, 2))
    assert item.tokens == expected.tokens
