"""A scheduled sequence, from its request to its end."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.engine.contract.generation_messages import SequenceOutput
from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest, PromptScore
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.scheduling.steps import Handle, Output


# What most calls take, with the text before them.
CALL_TOKENS = 128


@dataclass(slots=True)
class ScheduledSequence:
    """One sequence, or the beams of a beam search, which run and end together.

    Attributes:
        request: The request.
        tokens: The tokens generated so far.
        handle: The sequence inside the pipeline; None while it waits or its prompt is read.
        drops: The number of times that the pipeline dropped it.
        steps: The number of steps since it runs. A beam search does not report its length: it
            grows by at most a token a step.
        added: The request with which it is added to the pipeline.
        cache_ids: Those of its prompt.
        scores: The log probabilities of its prompt, until they are reported.
        repeated: Tokens that are generated once more, because it was added again as before.
        cached: The number of tokens that the prefix cache had of its prompt when it was first read,
            until it is reported; None: not known.
        read_before: Where blocks of its prompt end that were read before.
        found: Where the pipeline began to read its prompt since it runs; None: not known.
        filled: The blocks that it has filled; None: it is not known whether others have the same.
        last_block: The name of the last of these (KnownPrefixes); 0 if there are none.
        has_run: Whether it ran before.
        suspect: Whether it ran when something failed, and has generated nothing since.
        broke_at: The steps that a beam search had run for then.
    """

    request: SequenceRequest
    tokens: list[int] = field(init=False)
    handle: Handle | None = None
    drops: int = 0
    steps: int = 0
    added: SequenceRequest = field(init=False)
    cache_ids: tuple[int, ...] = field(init=False)
    scores: PromptScores | None = None
    repeated: list[int] = field(default_factory=list)
    cached: int | None = None
    read_before: list[int] = field(default_factory=list)
    found: int | None = None
    filled: int | None = None
    last_block: int = 0
    has_run: bool = False
    suspect: bool = field(init=False)
    broke_at: int = field(init=False)

    def __post_init__(self) -> None:
        """Continue from the tokens that another process generated."""
        self._add_as(self.request)
        self.tokens = [*self.request.generated]
        self.suspect = self.request.suspect
        self.broke_at = self.request.ran
        self.has_run = self.suspect or bool(self.tokens)

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """The cache ids of the prompt, without the tokens generated so far."""
        return self.cache_ids[: len(self.request.generation.prompt)]

    @property
    def answered(self) -> int:
        """The number of generated tokens at the end of the prompt that it is added with."""
        return len(self.added.generation.prompt) - len(self.request.generation.prompt)

    @property
    def length(self) -> int:
        """The number of tokens of prompt and answer so far."""
        grown = len(self.tokens) if self.request.generation.beams == 1 else self.steps
        return len(self.request.generation.prompt) + grown

    @property
    def step_tokens(self) -> int:
        """The number of tokens that the next step reads of it once its prompt is read."""
        return self.request.generation.beams * (self.handle.unread if self.handle else 1)

    @property
    def needs_grammar(self) -> bool:
        """Whether its compiled grammar is yet to be looked up, in the step of its first token."""
        return bool(self.added.generation.grammar) and not (self.handle and self.handle.answered)

    @property
    def constrained(self) -> bool:
        """Whether it has a grammar that cannot be resumed in the middle of the answer."""
        return bool(self.request.generation.grammar) and not self.request.generation.resumptions

    @property
    def never_preempted(self) -> bool:
        """Whether preemption would lose all tokens, so that room is kept for the whole answer.

        It would for a grammar that cannot be resumed, and for a beam search, which starts over.
        """
        return self.constrained or self.request.generation.beams > 1

    @property
    def max_length(self) -> int:
        """The maximum number of tokens of prompt and answer."""
        return len(self.request.generation.prompt) + self.request.generation.max_tokens

    @property
    def admission_length(self) -> int:
        """The number of tokens of prompt and answer that admission leaves room for.

        That is the maximum if the caller set `max_tokens`, and for a beam search, which reports
        nothing before it ends. A sequence that may call tools gets room for a call, so that it is
        not preempted within one.
        """
        if self.request.generation.reserve_max_tokens or self.request.generation.beams > 1:
            return self.max_length
        if not self.request.generation.resumptions:
            return self.length
        return min(
            self.max_length, max(self.length, len(self.request.generation.prompt) + CALL_TOKENS)
        )

    def texts(self) -> list[tuple[int, ...]]:
        """Return the texts that the pipeline may have read, as cache ids.

        It reads a token one step after it was generated.

        The beams of a beam search are unknown, but they all begin with the prompt: one of the
        texts returned ends in the partial block that they continue in (see `partial_blocks`).
        """
        if self.request.generation.beams > 1:
            return [self.prompt_ids, self.prompt_ids[:-1]]
        generated = self.tokens[self.answered : len(self.tokens) - len(self.repeated)]
        whole = (*self.cache_ids, *generated)
        if self.handle and self.handle.shared is not None:
            whole = whole[: self.handle.shared]
        return [whole, whole[:-1]] if len(whole) > len(self.prompt_ids) else [whole]

    def note_cached(self, handle: Handle) -> None:
        """Note what was cached of the prompt that a handle has read, when it is read first."""
        if self.cached is None and not self.tokens:
            self.cached = handle.cached
        if self.found is None:
            self.found = handle.cached

    def take(self, handle: Handle) -> list[Output]:
        """Return the outputs of its handle since the last call."""
        outputs = handle.take()
        if outputs:
            self.note_cached(handle)
        return outputs

    def report(self, outputs: Sequence[Output], scores: list[PromptScore]) -> list[SequenceOutput]:
        """Return the messages about outputs, with scores of the prompt if they are due."""
        if not outputs:
            return []
        cached, self.cached = self.cached, None
        logprobs = self.request.generation.logprobs
        return [
            SequenceOutput(
                self.request.id,
                index,
                output.tokens,
                output.logprobs if logprobs else [],
                output.finish,
                output.alternatives,
                scores,
                output.reason,
                cached,
                output.accepted,
                output.rejected,
            )
            for index, output in enumerate(outputs)
        ]

    def go_on(self, grammar: str | None, salts: Iterator[int]) -> None:
        """Make the request with which the sequence is added to the pipeline now.

        Its prompt is the prompt with the tokens so far, and `grammar` is that of the rest ("" for
        none). If no grammar can begin there (None), the sequence is added as before: with the same
        seed it generates its tokens once more, until it is where it was, with its grammar. A beam
        search starts over, too. So does a prompt whose log probabilities are asked for, with one of
        the cache salts: tokens that the prefix cache finds have no log probabilities.
        """
        generation, done = self.request.generation, len(self.tokens)
        self.repeated, self.found, self.filled, self.last_block = [], None, None, 0
        if done == 0:
            self.scores = None
            if generation.prompt_logprobs is None:
                self._add_as(self.request)
                return
            prompt = generation.prompt
            self.scores = PromptScores(prompt.tokens, generation.prompt_logprobs)
            salted = dataclasses.replace(prompt, cache_salt=next(salts))
            self._add_with(dataclasses.replace(generation, prompt=salted))
        elif grammar is None:
            self.repeated = self.tokens[self.answered :]
        else:
            rest = generation.followed_by(self.tokens)
            self._add_with(dataclasses.replace(rest, grammar=grammar))

    def repeats(self, tokens: Sequence[int], *, ended: bool) -> int:
        """Return how many of the new tokens are repeated ones, or -1 if they differ from those.

        In a batch with other sequences numbers round differently, which may give other tokens.
        Then the sequence has to end: it would continue without its grammar.
        """
        count = min(len(tokens), len(self.repeated))
        same = self.repeated[:count] == [*tokens[:count]]
        if not same or (ended and count < len(self.repeated)):
            return -1
        del self.repeated[:count]
        return count

    def _add_with(self, generation: GenerationRequest) -> None:
        self._add_as(msgspec.structs.replace(self.request, generation=generation))

    def _add_as(self, request: SequenceRequest) -> None:
        self.added = request
        self.cache_ids = request.generation.prompt.cache_ids()
