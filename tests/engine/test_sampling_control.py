"""Bias, bans, penalties and the likeliest tokens, against the same models run without genai."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.structured_output import Constraint, ConstraintKind
from ovchat_server.engine.contract.generation import GenerationRequest, Sampling, TokenFinish
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.grammar.formats import grammar_text
from tests.conftest import ROOT
from tests.engine.subject import (
    END,
    EXACTLY,
    PROMPTS,
    TOKENIZER,
    Subject,
    same_alternatives,
    started,
)
from tests.grammars import format_of
from tests.random_model import save_random_model
from tests.reference_rules import Answer, ReferenceModel, log_softmax, ruled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.engine.conftest import Sequence

LENGTH = 24
# A chi-square of 5 degrees of freedom is higher once in 10,000 times.
CRITICAL = 25.74


class Ruled(Subject):
    """One that is asked to keep to rules."""

    def free(self, prompt: tuple[int, ...]) -> list[int]:
        """What it says when nobody asks for anything."""
        return self.reference.answer(prompt, Sampling(), LENGTH).tokens

    async def check(self, samplings: list[Sampling], **fields: Any) -> list[Answer]:
        """Whether it says what the reference does behind all prompts; what it was."""
        pairs = list(zip(PROMPTS, samplings, strict=True))
        answers = [self.reference.answer(prompt, sampling, LENGTH) for prompt, sampling in pairs]
        said = await self.ask(
            *(
                GenerationRequest(Prompt(prompt), LENGTH, sampling, ignore_eos=True, **fields)
                for prompt, sampling in pairs
            )
        )
        assert [item.tokens for item in said] == [item.tokens for item in answers]
        for item, answer in zip(said, answers, strict=True):
            close(item, answer, **fields)
        return answers


def close(said: Sequence, answer: Answer, *, logprobs: bool = False, top_logprobs: int = 0) -> None:
    """Whether what is told with the tokens is the model's own."""
    assert said.logprobs == pytest.approx(answer.logprobs if logprobs else [], abs=EXACTLY)
    tops = answer.tops(top_logprobs) if top_logprobs else []
    for told, expected in zip(said.alternatives, tops, strict=True):
        same_alternatives(told, expected)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = tmp_path_factory.mktemp("models")
    return {
        "demo": ROOT / "models/demo",
        "random": save_random_model(made / "random", 32768),
        "negative": save_random_model(made / "negative", 2048, offset=-50),
        "positive": save_random_model(made / "positive", 2048, offset=50),
    }


@pytest.fixture(scope="module", params=["random", pytest.param("demo", marks=pytest.mark.slow)])
async def subject(request: pytest.FixtureRequest, folders: dict[str, Path]) -> AsyncIterator[Ruled]:
    watched = await started(folders[request.param])
    yield Ruled(watched, ReferenceModel(folders[request.param]))
    await watched.engine.close()


def biased(free: list[int]) -> Sampling:
    return Sampling(bias=((free[0], -100.0), (free[5], 2.5), (20, 4.0), (21, 4.5)))


def banned(free: list[int]) -> Sampling:
    """A token, the free answer's own beginning, and what it says after the same token."""
    return Sampling(banned=((free[1],), (free[0], free[2]), tuple(free[:4]), (free[3], free[3])))


SAMPLINGS: dict[str, Any] = {
    "nothing": lambda _: Sampling(),
    "bias": biased,
    "allowed": lambda _: Sampling(allowed=tuple(range(10, 30))),
    "allowed and bias": lambda _: Sampling(allowed=(5, 6, 7), bias=((6, 3.0), (900, 100.0))),
    "banned": banned,
    "presence": lambda _: Sampling(presence_penalty=1.5),
    "presence below 0": lambda _: Sampling(presence_penalty=-1.5),
    "frequency": lambda _: Sampling(frequency_penalty=0.7),
    "repetition": lambda _: Sampling(repetition_penalty=1.3),
    "repetition with bias": lambda free: Sampling(
        repetition_penalty=1.3, bias=biased(free).bias, presence_penalty=0.5
    ),
    "all": lambda free: Sampling(
        repetition_penalty=0.9,
        presence_penalty=0.5,
        frequency_penalty=1.0,
        bias=biased(free).bias,
        banned=((11,), (12, 13), (14, 14)),
        allowed=tuple(range(1000)),
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in ("allowed", "bias") else name
        for name in SAMPLINGS
    ],
)
async def test_the_likeliest_tokens_are_those_of_the_rules(subject: Ruled, name: str) -> None:
    samplings = [SAMPLINGS[name](subject.free(prompt)) for prompt in PROMPTS]

    await subject.check(samplings)


@pytest.mark.parametrize(
    "top", [5, *(pytest.param(top, marks=pytest.mark.slow) for top in (0, 1, 20))]
)
@pytest.mark.parametrize("name", ["nothing", "bias", "all"])
async def test_what_is_told_is_the_models_own_distribution(
    subject: Ruled, name: str, top: int
) -> None:
    samplings = [SAMPLINGS[name](subject.free(prompt)) for prompt in PROMPTS]

    answers = await subject.check(samplings, logprobs=True, top_logprobs=top)

    if name == "bias":
        # Some of them would not have been chosen.
        assert any(item.tops(1)[0][0][0] != item.tokens[0] for item in answers)


async def test_alternatives_may_come_without_log_probabilities(subject: Ruled) -> None:
    await subject.check([Sampling()] * len(PROMPTS), top_logprobs=2)


@pytest.mark.parametrize("fewest", [0, 1, 9])
async def test_no_bias_brings_the_end_before_the_fewest_tokens(subject: Ruled, fewest: int) -> None:
    sampling = Sampling(bias=((END, 1000.0),))
    said = await subject.ask(
        *(
            GenerationRequest(Prompt(prompt), LENGTH, sampling, min_tokens=fewest)
            for prompt in PROMPTS
        )
    )

    for prompt, item in zip(PROMPTS, said, strict=True):
        answer = subject.reference.answer(prompt, sampling, LENGTH, {END}, fewest)
        assert (item.tokens, item.finish) == (answer.tokens, TokenFinish.STOP)
        assert len(item.tokens) == fewest + 1


@pytest.mark.parametrize("temperature", [0.0, 1.0])
async def test_a_grammar_that_leaves_only_what_is_banned_is_followed(
    subject: Ruled, temperature: float
) -> None:
    grammar = grammar_text(format_of(Constraint(ConstraintKind("regex"), "[0-9]{3}", FieldPath())))
    sampling = Sampling(temperature, allowed=(TOKENIZER.token("<think>"),))

    [said] = await subject.ask(GenerationRequest(Prompt((1, 2)), 9, sampling, grammar=grammar))

    assert said.finish is TokenFinish.STOP
    assert re.fullmatch("[0-9]{3}", TOKENIZER.decode(said.tokens[:-1]))


@pytest.mark.parametrize("banned", [((7,),), ((7, 7),)])
async def test_bans_that_leave_nothing_end_no_request(
    subject: Ruled, banned: tuple[tuple[int, ...], ...]
) -> None:
    sampling = Sampling(allowed=(7,), banned=banned)

    [said] = await subject.ask(GenerationRequest(Prompt((1, 2)), 5, sampling, ignore_eos=True))

    assert (len(said.tokens), said.finish) == (5, TokenFinish.LENGTH)


async def test_what_is_sampled_has_the_distribution_of_the_rules(subject: Ruled) -> None:
    prompt = PROMPTS[0]
    logits = subject.reference.logits(prompt)
    tokens = [int(token) for token in np.argsort(-logits)[:6]]
    # Nearer to each other than they are, so that each comes often.
    bias = tuple((token, float(logits[tokens].mean() - logits[token]) * 0.8) for token in tokens)
    sampling = {"temperature": 1.0, "allowed": tuple(tokens), "bias": bias}

    said = await subject.ask(
        *(
            GenerationRequest(Prompt(prompt), 1, Sampling(seed=seed, **sampling))
            for seed in range(400)
        )  # type: ignore[arg-type]
    )

    shares = np.exp(log_softmax(ruled(logits, Sampling(**sampling), prompt, ())))[tokens]  # type: ignore[arg-type]
    counts = np.array([sum(item.tokens == [token] for item in said) for token in tokens])
    expected = shares * len(said)
    assert counts.sum() == len(said)
    assert expected.min() > 5
    assert ((counts - expected) ** 2 / expected).sum() < CRITICAL


@pytest.mark.slow
@pytest.mark.parametrize("name", ["negative", "positive"])
async def test_penalties_lower_what_was_said_whatever_the_sign(
    folders: dict[str, Path], name: str
) -> None:
    watched = await started(folders[name])
    subject = Ruled(watched, ReferenceModel(folders[name]))
    few = tuple(range(10, 16))
    try:
        row = subject.reference.logits(PROMPTS[0])
        assert (row.max() < 0) if name == "negative" else (row.min() > 0)
        distinct = []
        for changes in ({}, {"presence_penalty": 2.0}, {"frequency_penalty": 2.0}):
            samplings = [Sampling(allowed=few, **changes)] * len(PROMPTS)
            answers = await subject.check(samplings)
            distinct.append(sum(max(map(item.tokens.count, few)) for item in answers))
        free, presence, frequency = distinct
        assert presence < free
        assert frequency < presence
    finally:
        await watched.engine.close()
