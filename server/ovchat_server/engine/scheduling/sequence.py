"""A sequence from its arrival at the scheduler to its end."""

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


# Tokens that most tool calls take, with the text before them.
CALL_TOKENS = 128


@dataclass(slots=True)
class ScheduledSequence:
    """One sequence, or the beams of a beam search, which run and are preempted together.

    Attributes:
        tokens: Tokens generated so far.
        handle: The sequence in the pipeline; None while it waits or its prompt is read.
        drops: How often the pipeline dropped it.
        steps: Steps since it was added. A beam search does not report its length, which grows by
            at most one token in a step.
        added: The request that it is added to the pipeline with.
        scores: The scores of its prompt, until they are reported.
        repeated: Tokens that are generated once more, because it was restarted.
        has_run: It was admitted before.
        suspect: It ran when a step failed, and has not come further since.
        broke_at: Steps that a beam search had run for then. Others have `tokens`.
    """

    request: SequenceRequest
    tokens: list[int] = field(init=False)
    handle: Handle | None = None
    drops: int = 0
    steps: int = 0
    added: SequenceRequest = field(init=False)
    scores: PromptScores | None = None
    repeated: list[int] = field(default_factory=list)
    has_run: bool = False
    suspect: bool = field(init=False)
    broke_at: int = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the tokens that an engine process which died has generated."""
        self.added = self.request
        self.tokens = [*self.request.generated]
        self.suspect = self.request.suspect
        self.broke_at = self.request.ran
        self.has_run = self.suspect or bool(self.tokens)

    @property
    def prompt(self) -> tuple[int, ...]:
        """The prompt of the request, as the pipeline knows it: see Pipeline.uncached."""
        return self.added.generation.prompt[: len(self.request.generation.prompt)]

    @property
    def answered(self) -> int:
        """The number of tokens of the answer at the end of the prompt it is added with."""
        return len(self.added.generation.prompt) - len(self.request.generation.prompt)

    @property
    def length(self) -> int:
        """The number of tokens of prompt and answer so far."""
        grown = len(self.tokens) if self.request.generation.beams == 1 else self.steps
        return len(self.request.generation.prompt) + grown

    @property
    def needs_grammar(self) -> bool:
        """Whether a step to come looks its compiled grammar up: that of its first token."""
        return bool(self.added.generation.grammar) and not (self.handle and self.handle.answered)

    @property
    def constrained(self) -> bool:
        """Whether it has a grammar that cannot be resumed in the middle."""
        return bool(self.request.generation.grammar) and not self.request.generation.resumptions

    @property
    def stays(self) -> bool:
        """Whether preempting it would lose its answer, as it does for a beam search."""
        return self.constrained or self.request.generation.beams > 1

    @property
    def longest(self) -> int:
        """The most tokens of prompt and answer."""
        return len(self.request.generation.prompt) + self.request.generation.max_tokens

    @property
    def expected(self) -> int:
        """The number of tokens of prompt and answer for which there should be room from the start.

        All of them if the caller gave a limit, and in a beam search. One that may call tools has
        room for a call: inside of it, it cannot be resumed.
        """
        if self.request.generation.reserve or self.request.generation.beams > 1:
            return self.longest
        if not self.request.generation.resumptions:
            return self.length
        return min(
            self.longest, max(self.length, len(self.request.generation.prompt) + CALL_TOKENS)
        )

    def texts(self) -> list[tuple[int, ...]]:
        """Return the texts whose KV the pipeline may hold, with and without the last token.

        A token is read in the step after it was chosen. What the beams of a beam search generate is
        not known, but it begins with their prompt: one of its texts ends inside the block in which
        everything continues that begins with it (`partial_blocks`).
        """
        if self.request.generation.beams > 1:
            return [self.prompt, self.prompt[:-1]]
        generated = self.tokens[: len(self.tokens) - len(self.repeated)]
        whole = (*self.prompt, *generated)
        return [whole, whole[:-1]] if generated else [whole]

    def go_on(self, grammar: str | None, pipeline: Pipeline) -> None:
        """Set `added` to what is to be added to the pipeline now.

        Its prompt includes the tokens so far, and it has `grammar` for the rest ("": any text).
        With None, where no grammar can begin, it is added as it was before: with the same seed it
        generates the same tokens once more, and so comes to their end with its grammar. A beam
        search starts anew, too. A prompt that is to be scored must not be in the prefix cache, or
        there would be no logits.
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
                    # Otherwise it would draw the same random numbers again.
                    sampling=_reseeded(generation.sampling, done),
                    grammar=grammar,
                )
            )

    def repeats(self, tokens: Sequence[int], *, ended: bool) -> int:
        """Return how many of the new tokens repeat those before the restart.

        Beside other sequences numbers round in another way, which may change tokens. Then this is
        negative, and the sequence cannot continue: it would do so without its grammar.
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
