"""Prompts that begin alike are answered as each would be alone."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.generation import BeamSearch, GenerationRequest
from ovchat_server.engine.contract.prompt import Prompt
from tests.branches import Branches
from tests.engine.conftest import Sequence, Watched, collect_all, spec
from tests.random_model import save_random_model
from tests.reference_rules import ReferenceModel, log_softmax

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

VOCABULARY = 4096
# Of OpenVINO's CPU plugin.
BLOCK = 32


# Tokens of a step: a prompt may take several.
@pytest.fixture(scope="module", params=[64, pytest.param(256, marks=pytest.mark.slow)])
async def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Watched, ReferenceModel]]:
    path = save_random_model(tmp_path_factory.mktemp("models") / "random", VOCABULARY)
    fields = {"max_num_batched_tokens": request.param, "context_length": 512, "kv_blocks": 256}
    watched = Watched(spec(str(path), end_tokens=(), **fields))
    watched.engine.start()
    await watched.until(ModelState.READY)
    yield watched, ReferenceModel(path)
    await watched.engine.close()


def words(length: int) -> tuple[int, ...]:
    return tuple(random.choices(range(1500), k=length))


def asked(prompt: tuple[int, ...], answer: int = 6) -> GenerationRequest:
    return GenerationRequest(Prompt(prompt), answer, ignore_eos=True, logprobs=True)


def check(reference: ReferenceModel, request: GenerationRequest, answer: Sequence) -> None:
    text = list(request.prompt.tokens)
    for token, logprob in zip(answer.tokens, answer.logprobs, strict=True):
        assert logprob == pytest.approx(log_softmax(reference.logits(text))[token], abs=1e-3)
        text.append(token)


# Up to the end of the block, into the next one, up to the end of that.
@pytest.mark.parametrize(
    ("length", "more"), [(1, 20), (1, 31), (8, 24), (40, 20), (40, 24), (8, 56)]
)
async def test_several_go_on_from_a_text_that_ended_inside_a_block(
    engine: tuple[Watched, ReferenceModel], length: int, more: int
) -> None:
    watched, reference = engine
    begun = words(length)
    await collect_all(watched.engine.generate([asked(begun, 1)]))
    requests = [asked(begun + words(more)) for _ in range(4)]

    answers = await collect_all(watched.engine.generate(requests))

    for request, answer in zip(requests, answers, strict=True):
        check(reference, request, answer)


async def test_several_go_on_from_one_that_runs(
    engine: tuple[Watched, ReferenceModel],
) -> None:
    watched, reference = engine
    shared = words(100)
    # All go on in the first block of the one before them.
    requests = [asked(shared[:length], 40) for length in (1, 1, 17, 31, 33, 64, 100)]
    answers = await asyncio.gather(
        *(collect_all(watched.engine.generate([request])) for request in requests)
    )

    for request, [answer] in zip(requests, answers, strict=True):
        check(reference, request, answer)


async def test_conversations_part_at_any_token(engine: tuple[Watched, ReferenceModel]) -> None:
    watched, reference = engine
    first = asked(words(30), 20)
    [said] = await collect_all(watched.engine.generate([first]))
    text = (*first.prompt.tokens, *said.tokens)
    requests = [
        asked(text[:length] + words(9))
        for length, _ in itertools.product((35, 48, 49, 50), range(2))
    ]

    answers = await collect_all(watched.engine.generate(requests))

    for request, answer in zip(requests, answers, strict=True):
        check(reference, request, answer)


# A prompt that fills its blocks leaves none that its answers share.
@pytest.mark.parametrize("length", [BLOCK, 40])
@pytest.mark.parametrize("answer", [3, 20])
async def test_several_go_on_from_each_answer_of_a_search(
    engine: tuple[Watched, ReferenceModel], length: int, answer: int
) -> None:
    watched, reference = engine
    search = GenerationRequest(
        Prompt(words(length)), answer, ignore_eos=True, beam_search=BeamSearch(width=4, returned=2)
    )
    found = await collect_all(watched.engine.generate([search]))
    requests = [
        asked((*search.prompt.tokens, *beam.tokens[:end], *words(9)))
        for beam in found
        for end in (answer, answer - 1)
        for _ in range(3)
    ]

    answers = await collect_all(watched.engine.generate(requests))

    for request, said in zip(requests, answers, strict=True):
        check(reference, request, said)


@pytest.mark.parametrize("width", [1, 3])
async def test_one_goes_on_where_another_is_still_being_read(
    engine: tuple[Watched, ReferenceModel], width: int
) -> None:
    watched, reference = engine
    begun = words(40)
    await collect_all(watched.engine.generate([asked(begun, 1)]))
    search = BeamSearch(width, 1) if width > 1 else None
    slow = [
        GenerationRequest(
            Prompt(begun + words(more)), 6, beam_search=search, ignore_eos=True, logprobs=True
        )
        for more in (15, 19, 24, 40)
    ]
    # The first takes what there is to read in some steps.
    requests = [asked(words(400)), *slow, asked(begun + words(15)), asked(begun + words(24))]

    with watched.engine.generate([asked(words(5), 80)]) as stream:
        await anext(stream)
        answers = await collect_all(watched.engine.generate(requests))

    for request, answer in zip(requests, answers, strict=True):
        check(reference, request, answer)


@pytest.mark.parametrize("steps", [1, 2, 3])
async def test_a_prompt_given_up_while_it_was_read_is_read_right_the_next_time(
    engine: tuple[Watched, ReferenceModel], steps: int
) -> None:
    watched, reference = engine
    request = asked(words(400))
    # On a busy machine both may have come further: they are as long as the context lets them be.
    with watched.engine.generate([asked(words(5), 507)]) as stream:
        await anext(stream)
        with watched.engine.generate([asked(request.prompt.tokens, 112)]):
            await watched.until_load(lambda load: load.running_requests == 2)
            for _ in range(steps):
                await anext(stream, None)
        [answer] = await collect_all(watched.engine.generate([request]))

    check(reference, request, answer)


@pytest.mark.slow
async def test_conversations_that_part_anywhere_at_once(
    engine: tuple[Watched, ReferenceModel],
) -> None:
    branches = Branches(*engine, random.Random(1))
    await branches.run(20)
    assert branches.wrong == []
    assert branches.checked > 100


@pytest.mark.parametrize(
    ("shared", "cached"),
    [
        pytest.param(0, 0, id="nothing"),
        pytest.param(100, 3 * BLOCK, id="full blocks"),
        # The last token is always read.
        pytest.param(8 * BLOCK, 8 * BLOCK - 1, id="the same prompt"),
    ],
)
async def test_what_the_prefix_cache_had_of_a_prompt_is_counted_once(
    engine: tuple[Watched, ReferenceModel], shared: int, cached: int
) -> None:
    watched, _ = engine
    before = words(8 * BLOCK)
    [first] = await collect_all(watched.engine.generate([asked(before)]))

    request = asked(before[:shared] + words(8 * BLOCK - shared))
    [answer] = await collect_all(watched.engine.generate([request]))

    assert first.cached == [0]
    assert answer.cached == [cached]
