"""Many different requests in the same steps: each gets what it would get alone."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.models import ModelState
from ovchat_server.domain.structured_output import Constraint, ConstraintKind
from ovchat_server.engine.contract.generation import BeamSearch, GenerationRequest, Sampling
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.grammar.formats import grammar_text
from tests.engine.conftest import Sequence, Watched, collect_all, spec
from tests.grammars import format_of
from tests.random_model import save_random_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

COUNT = 32
VOCABULARY = 4096
END = 1529
DIGITS = grammar_text(format_of(Constraint(ConstraintKind("regex"), "[0-9 ]{40,60}", FieldPath())))
# Every so many of them is given up.
GIVEN_UP = 7


@dataclass(frozen=True)
class Mix:
    """What a test asks for at once."""

    requests: list[GenerationRequest]

    @property
    def kept(self) -> dict[int, GenerationRequest]:
        pairs = enumerate(self.requests)
        return {number: item for number, item in pairs if number % GIVEN_UP}


def samplings(random: random.Random) -> list[Sampling]:
    tokens = [random.randrange(VOCABULARY) for _ in range(200)]
    banned = (*((token,) for token in tokens[:50]), *itertools.pairwise(tokens[50:]))
    return [
        Sampling(),
        Sampling(bias=tuple((token, random.uniform(-3, 6)) for token in tokens)),
        Sampling(banned=banned),
        Sampling(presence_penalty=2.0, allowed=tuple(tokens[:30])),
        Sampling(frequency_penalty=1.0, repetition_penalty=1.2),
        Sampling(repetition_penalty=1.2),
    ]


def mixed(seed: int) -> Mix:
    """Prompts of all lengths, some with the same beginnings, and all that can be asked for."""
    chance = random.Random(seed)
    shared = tuple(chance.randrange(1500) for _ in range(300))
    requests = []
    for number in range(COUNT):
        length = chance.choice([1, 2, 31, 32, 33, 64, 100, chance.randint(1, 300)])
        begun = chance.choice([0, 0, 32, 64, 100, length])
        own = [chance.randrange(1500) for _ in range(length)]
        prompt = (*shared[: min(begun, length)], *own)[:length]
        answer = chance.randint(20, 80)
        if number % 8 == 3:
            # Of the second some beams end early.
            ends = tuple(range(0, VOCABULARY, 7)) if number % 16 == 11 else ()
            search = BeamSearch(width=3, returned=2)
            requests.append(
                GenerationRequest(
                    Prompt(prompt[:100]),
                    answer,
                    beam_search=search,
                    stop_tokens=ends,
                    logprobs=True,
                )
            )
        elif number % 8 == 5:
            sampling = samplings(chance)[number // 8 % 2]
            requests.append(
                GenerationRequest(Prompt(prompt), answer, sampling, grammar=DIGITS, logprobs=True)
            )
        else:
            sampling = chance.choice(samplings(chance))
            requests.append(
                GenerationRequest(
                    Prompt(prompt),
                    2 * answer,
                    sampling,
                    ignore_eos=True,
                    logprobs=True,
                    top_logprobs=chance.choice([0, 0, 1, 5, 20]),
                    prompt_logprobs=chance.choice([None, None, 0, 5]),
                )
            )
    return Mix(requests)


@pytest.fixture(scope="module")
async def small(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Watched]:
    path = save_random_model(tmp_path_factory.mktemp("models") / "random", VOCABULARY)
    watched = Watched(
        spec(str(path), name="small", end_tokens=(END,), context_length=512, kv_blocks=24)
    )
    watched.engine.start()
    await watched.until(ModelState.READY)
    yield watched
    await watched.engine.close()


async def alone(watched: Watched, request: GenerationRequest) -> list[Sequence]:
    return await collect_all(watched.engine.generate([request]))


async def given_up(watched: Watched, request: GenerationRequest, after: int) -> None:
    with watched.engine.generate([request]) as generation:
        async for _ in generation:
            after -= 1
            if after <= 0:
                return


def same(got: list[Sequence], expected: list[Sequence]) -> None:
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert (one.tokens, one.finish) == (other.tokens, other.finish)
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3)
        assert len(one.alternatives) == len(other.alternatives)
        for told, wanted in zip(one.alternatives, other.alternatives, strict=True):
            assert dict(told) == pytest.approx(dict(wanted), abs=1e-3)
        assert len(one.prompt) == len(other.prompt)
        for told_of, wanted_of in zip(one.prompt, other.prompt, strict=True):
            assert told_of.logprob == pytest.approx(wanted_of.logprob, abs=1e-3)
            alternatives = pytest.approx(dict(wanted_of.alternatives), abs=1e-3)
            assert dict(told_of.alternatives) == alternatives


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2, 13, 15, 18, 20])
async def test_each_gets_what_it_gets_alone(small: Watched, seed: int) -> None:
    mix = mixed(seed)
    expected = {number: await alone(small, item) for number, item in mix.kept.items()}

    leaving = [
        given_up(small, item, after=number)
        for number, item in enumerate(mix.requests)
        if number not in mix.kept
    ]
    got = await small.together(*(alone(small, item) for item in mix.kept.values()), *leaving)

    for sequences, wanted in zip(got, expected.values(), strict=False):
        assert sequences is not None
        same(sequences, wanted)
    load = small.engine.status.load
    assert load is not None
    assert load.preemptions > 0
    await small.idle()
