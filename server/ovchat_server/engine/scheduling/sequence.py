"""A sequence that is scheduled, from its coming to its end."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.scheduling.steps import Handle, Pipeline


# What most calls take, with what is said before them.
CALL_TOKENS = 128


@dataclass(slots=True)
class ScheduledSequence:
    """One sequence, or the beams of a search, which run and are given up together.

    Attributes:
        request: What was asked for.
        tokens: What came of it so far.
        handle: Where it runs; None: it waits.
        drops: Times that the pipeline dropped it.
        steps: Steps since it runs. A search does not tell its length: it grows by a token a
            step at most.
        added: What it is added to the pipeline with.
        scores: What is told of its prompt, until that is told.
        repeated: Tokens that come once more, because it began anew where it had begun before.
        begun: It ran before.
        suspect: It was there when something broke, and has not come further since.
        broke_at: Steps that a search ran for then. Others tell how far they are.
    """

    request: SequenceRequest
    tokens: list[int] = field(init=False)
    handle: Handle | None = None
    drops: int = 0
    steps: int = 0
    added: SequenceRequest = field(init=False)
    scores: PromptScores | None = None
    repeated: list[int] = field(default_factory=list)
    begun: bool = False
    suspect: bool = field(init=False)
    broke_at: int = field(init=False)

    def __post_init__(self) -> None:
        """Begin where another process was."""
        self.added = self.request
        self.tokens = [*self.request.generated]
        self.suspect = self.request.suspect
        self.broke_at = self.request.ran
        self.begun = self.suspect or bool(self.tokens)

    @property
    def prompt(self) -> tuple[int, ...]:
        """The request's, as the pipeline knows it: see Pipeline.uncached."""
        return self.added.generation.prompt[: len(self.request.generation.prompt)]

    @property
    def answered(self) -> int:
        """Tokens of the answer at the end of the prompt that it is added with."""
        return len(self.added.generation.prompt) - len(self.request.generation.prompt)

    @property
    def length(self) -> int:
        """Tokens of prompt and answer so far."""
        grown = len(self.tokens) if self.request.generation.beams == 1 else self.steps
        return len(self.request.generation.prompt) + grown

    @property
    def constrained(self) -> bool:
        """Whether it has a grammar that cannot go on in the middle."""
        return bool(self.request.generation.grammar) and not self.request.generation.resumptions

    @property
    def stays(self) -> bool:
        """Whether all would be lost with its place: a search begins anew, too."""
        return self.constrained or self.request.generation.beams > 1

    @property
    def longest(self) -> int:
        """Tokens of prompt and answer at the most."""
        return len(self.request.generation.prompt) + self.request.generation.max_tokens

    @property
    def expected(self) -> int:
        """Tokens of prompt and answer that it should have room for from the start.

        All of them where the caller said how many, or of a search, which says nothing before it
        ends. Else one that may call at any time needs some for a call: it had better not lose its
        place inside of it.
        """
        if self.request.generation.reserve or self.request.generation.beams > 1:
            return self.longest
        if not self.request.generation.resumptions:
            return self.length
        return min(
            self.longest, max(self.length, len(self.request.generation.prompt) + CALL_TOKENS)
        )

    def texts(self) -> list[tuple[int, ...]]:
        """What the pipeline may have of it: it reads a token in the step after it came.

        What the beams of a search make is not known, but it begins with their prompt: one of its
        texts ends inside a block where all that goes on from there is met (`partial_blocks`).
        """
        if self.request.generation.beams > 1:
            return [self.prompt, self.prompt[:-1]]
        said = self.tokens[: len(self.tokens) - len(self.repeated)]
        whole = (*self.prompt, *said)
        return [whole, whole[:-1]] if said else [whole]

    def go_on(self, grammar: str | None, pipeline: Pipeline) -> None:
        """Make what to add to the pipeline now.

        With what there is as a prompt, and `grammar` for the rest ("": anything). Where no
        grammar could begin, None, as it was added before: its own seed makes the tokens that it
        has already once more, which is how it comes to their end with its grammar. A search
        starts anew, too. And so does a prompt that is to be scored, as one that the prefix cache
        does not know: of what it has nothing can be told.
        """
        generation, done = self.request.generation, len(self.tokens)
        self.repeated = []
        if done == 0:
            self.added, self.scores = self.request, None
            if generation.prompt_logprobs is not None:
                prompt = generation.prompt
                self.scores = PromptScores(prompt, generation.prompt_logprobs)
                self._add_with(dataclasses.replace(generation, prompt=pipeline.uncached(prompt)))
        elif grammar is None:
            self.repeated = self.tokens[self.answered :]
        else:
            self._add_with(
                dataclasses.replace(
                    generation,
                    prompt=(*generation.prompt, *self.tokens),
                    max_tokens=generation.max_tokens - done,
                    min_tokens=max(generation.min_tokens - done, 0),
                    # It must not draw the same random numbers again.
                    sampling=_reseeded(generation.sampling, done),
                    grammar=grammar,
                )
            )

    def repeats(self, tokens: Sequence[int], *, ended: bool) -> int:
        """How many of the tokens that came now came before.

        Beside other sequences numbers round in another way, which may make other tokens. Then
        this is negative, and the sequence cannot go on: it would do so without its grammar.
        """
        count = min(len(tokens), len(self.repeated))
        same = self.repeated[:count] == [*tokens[:count]]
        if not same or (ended and count < len(self.repeated)):
            return -1
        del self.repeated[:count]
        return count

    def _add_with(self, generation: GenerationRequest) -> None:
        self.added = msgspec.structs.replace(self.request, generation=generation)


def _reseeded(sampling: Sampling, done: int) -> Sampling:
    return dataclasses.replace(sampling, seed=(sampling.seed + done) % 2**32)
