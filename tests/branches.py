"""Conversations that part at any token, asked at once, each token checked against the model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.engine.contract.generation import BeamSearch, GenerationRequest
from ovchat_server.engine.contract.prompt import Prompt
from tests.engine.conftest import Watched, collect_all
from tests.reference_rules import ReferenceModel, log_softmax

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tests.engine.conftest import Sequence

WORDS = range(1500)
BLOCK = 32
LONGEST, LONGEST_ANSWER = 300, 40
# Texts that the next ones may go on from.
KEPT = 12
AT_ONCE, WIDTH = 16, 3
SEARCHED, SCORED, GIVEN_UP = 0.12, 0.13, 0.1
# What other requests in the step change in f32 is less.
ENOUGH = 2e-3


@dataclass
class Branches:
    """Asks an engine and a model beside it.

    Attributes:
        scores: Whether to ask for the log probabilities of prompts, too.
        checked: Sequences.
        wrong: Those whose log probabilities are not the model's: what was asked, and where.
    """

    watched: Watched
    reference: ReferenceModel
    random: random.Random
    scores: bool = True
    checked: int = 0
    wrong: list[tuple[GenerationRequest, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._texts = [self._words(length) for length in (1, 8, BLOCK - 1, BLOCK, 40)]

    async def run(self, rounds: int) -> None:
        for _ in range(rounds):
            requests = [self._request() for _ in range(self.random.randint(2, AT_ONCE))]
            # As choices of one request are.
            requests += self.random.choices(requests, k=self.random.choice([0, 1, 6]))
            answers = await asyncio.gather(*map(self._ask, requests))
            for request, sequences in zip(requests, answers, strict=True):
                for sequence in sequences:
                    self._check(request, sequence)
                    self._texts.append((*request.prompt.tokens, *sequence.tokens))
            self._texts = self._texts[-KEPT:]

    def _words(self, count: int) -> tuple[int, ...]:
        return tuple(self.random.choices(WORDS, k=count))

    def _request(self) -> GenerationRequest:
        text = self.random.choice([*self._texts, ()])
        text = text[: self.random.choice([len(text)] * 2 + [self.random.randint(0, len(text))])]
        # Mostly up to where a block ends.
        length = BLOCK * self.random.randint(1, 5)
        length += self.random.choice([0, 0, 0, 1, -1, self.random.randint(-16, 16)])
        more = max(length - len(text), self.random.choice([0, 1, 5]), 0 if text else 1)
        prompt = (*text, *self._words(more))[:LONGEST]
        chance = self.random.random()
        scored = self.scores and SEARCHED < chance < SEARCHED + SCORED
        answer = self.random.choice([1, 2, 6, 12, LONGEST_ANSWER])
        search = BeamSearch(WIDTH, WIDTH - 1) if chance < SEARCHED and self._fits(prompt) else None
        return GenerationRequest(
            Prompt(prompt),
            answer,
            beam_search=search,
            ignore_eos=True,
            logprobs=True,
            prompt_logprobs=0 if scored else None,
        )

    def _fits(self, prompt: tuple[int, ...]) -> bool:
        blocks = self.watched.spec.options.kv_blocks or 0
        return ((len(prompt) + LONGEST_ANSWER) // BLOCK + 2) * WIDTH < blocks

    async def _ask(self, request: GenerationRequest) -> list[Sequence]:
        # Some steps later, or in the same one.
        for _ in range(self.random.choice([0, 0, 1, 10, 100])):
            await asyncio.sleep(0)
        generation = self.watched.engine.generate([request])
        if self.random.random() > GIVEN_UP:
            return await collect_all(generation)
        with generation:
            for _ in range(self.random.choice([1, 10, 100])):
                await asyncio.sleep(0)
        return []

    def _check(self, request: GenerationRequest, sequence: Sequence) -> None:
        self.checked += 1
        for place, told in self._looked_at(sequence):
            text = [*request.prompt.tokens, *sequence.tokens[:place]]
            expected = log_softmax(self.reference.logits(text))[sequence.tokens[place]]
            if abs(expected - told) > ENOUGH:
                self.wrong.append((request, place))
                return

    def _looked_at(self, sequence: Sequence) -> Iterator[tuple[int, float]]:
        """The first log probabilities and the last: what is wrong stays so."""
        for place, logprob in enumerate(sequence.logprobs):
            if place < 2 or place + 1 == len(sequence.logprobs):
                yield place, logprob
