"""Changes and records the logits of the sequences that ask for it, and of no others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.genai.logits_processors import LogitsProcessor
from ovchat_server.engine.genai.reasoning_limit import ReasoningLimit
from ovchat_server.engine.genai.row_owners import row_owners
from ovchat_server.engine.scheduling.steps import Output
from ovchat_server.engine.scheduling.top_tokens import likeliest, log_total

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.genai.logits_hook import Floats, Integers
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores

# How far below the highest logit the chosen token may be: a plugin may add in 16 bits.
ROUNDING = 2**-6


def needs_processor(request: GenerationRequest, *, as_tokens: bool = True) -> bool:
    """Return whether a request needs a LogitsProcessor.

    genai's own repetition penalty would take a salted token (prompt_input) for an index of logits.
    Of a prompt that it does not get `as_tokens` it knows none.
    """
    sampling, unknown = request.sampling, request.prompt_logprobs is not None or not as_tokens
    return sampling.changes_logits or (unknown and sampling.repetition_penalty != 1)


def needs_logits(request: GenerationRequest, *, as_tokens: bool = True) -> bool:
    """Return whether a request needs its logits: to change them, or to report them."""
    return needs_processor(request, as_tokens=as_tokens) or request.top_logprobs > 0


class SequenceLogits:
    """Changes the logits of one sequence as its request asks, and reports what it asks for."""

    def __init__(
        self,
        request: GenerationRequest,
        answered: int,
        size: int,
        text: Callable[[Sequence[int]], str],
        *,
        as_tokens: bool = True,
    ) -> None:
        """Begin at the end of the prompt.

        Args:
            request: Its prompt holds the tokens of the answer that are known.
            answered: Number of tokens at the end of the prompt that belong to the answer.
            size: Number of logits in a row.
            text: Returns the text of tokens.
            as_tokens: See needs_processor.

        Raises:
            IndexError: A token is not in the vocabulary.
        """
        prompt = request.prompt.tokens
        start = len(prompt) - answered
        sampling = request.sampling
        limit = ReasoningLimit(sampling.reasoning, text) if sampling.reasoning else None
        self._top = request.top_logprobs
        self._reports = request.logprobs or request.top_logprobs > 0
        self._processor = (
            LogitsProcessor(sampling, prompt[:start], prompt[start:], size, limit)
            if needs_processor(request, as_tokens=as_tokens)
            else None
        )
        # Whether nothing but ours forbids tokens: a grammar could leave only banned ones.
        self._alone = not (request.grammar or request.min_tokens)
        # Whether it must choose the likeliest.
        self._certain = (
            self._alone
            and not sampling.temperature
            and (self._processor is not None or sampling.repetition_penalty == 1)
        )
        self._row: Floats | None = None
        # The likeliest tokens after the offsets were added.
        self._best: Integers | None = None
        self._total = 0.0
        self._problem = ""

    def fail(self, problem: str) -> None:
        """Note why it is unknown which logits are its own; the next `report` says so."""
        self._problem = problem

    def observe(self, row: Floats, kept: Floats, offsets: Callable[[], Floats]) -> None:
        """Record its row of logits, and change them.

        Args:
            row: Valid during the call.
            kept: Where the row is copied to; valid until the step is over.
            offsets: Returns the row of numbers to be added to the logits, all 0.
        """
        np.copyto(kept, row)
        self._row = kept
        if self._reports:
            self._total = log_total(row)
        if self._processor:
            values = offsets()
            self._processor.write_offsets(row, values)
            self._best = _best(row + values) if self._certain else None

    def report(self, output: Output) -> Output:
        """Return a step's output with what the request asks for.

        Its finish is MISATTRIBUTED if the token cannot be its own.
        """
        row, self._row = self._row, None
        problem = self._problem or self._mismatch(output.tokens, row)
        if problem:
            return Output([], [], MISATTRIBUTED, reason=problem)
        if row is None:
            return output
        [token] = output.tokens
        if self._processor:
            self._processor.append(token)
        if not self._reports:
            return output
        logprob = float(row[token]) - self._total
        top = likeliest(row, self._top).tolist() if self._top else []
        alternatives = [[(other, float(row[other]) - self._total) for other in top]] if top else []
        return Output([token], [logprob], output.finish, alternatives)

    def _mismatch(self, tokens: Sequence[int], row: Floats | None) -> str:
        """Return why the tokens cannot have been chosen from the row; "" if they can."""
        if row is None:
            return "a token came without logits" if tokens else ""
        if len(tokens) != 1:
            return f"{len(tokens)} tokens came of one row"
        if self._processor and self._alone and self._processor.bans(tokens[0]):
            return f"token {tokens[0]} came, which is banned"
        if self._certain:
            best = _best(row) if self._best is None else self._best
            if tokens[0] not in best:
                return f"token {tokens[0]} came, which is not the likeliest"
        return ""


def _best(logits: Floats) -> Integers:
    """Return the likeliest token, and those that rounding may put in its place."""
    highest = float(logits.max())
    return np.flatnonzero(logits >= highest - ROUNDING * max(abs(highest), 1.0))


class RunningSequence:
    """A sequence inside the pipeline; see row_owners.RowOwner."""

    def __init__(
        self,
        prompt: Sequence[int],
        logits: SequenceLogits | None = None,
        scores: PromptScores | None = None,
    ) -> None:
        """Begin with the prompt that is added to the pipeline.

        Args:
            prompt: Its tokens.
            logits: What is to be done with its logits.
            scores: Gathers the log probabilities of the prompt.
        """
        self.prompt = prompt
        self.logits = logits
        self.scores = scores
        self.length = len(prompt)
        self.last: int | None = None
        self.beams = 1
        # Where the first step began to read: the prefix cache had what is before.
        self.cached: int | None = None

    @property
    def echoes(self) -> bool:
        """Whether all tokens of the prompt make rows: until its scores are reported."""
        return self.scores is not None

    def read_from(self, position: int) -> None:
        """See RowOwner."""
        if self.cached is None:
            self.cached = position

    def grow(self, tokens: Sequence[int]) -> None:
        """Append tokens that the pipeline generated."""
        if tokens:
            self.length += len(tokens)
            self.last = tokens[-1]

    def report(self, output: Output) -> Output:
        """Return a step's output as SequenceLogits.report does; check the prompt's scores."""
        # Its prompt was read when the first token came.
        scores, self.scores = self.scores, None
        if scores and (problem := scores.problem(len(self.prompt))):
            return Output([], [], MISATTRIBUTED, reason=problem)
        return self.logits.report(output) if self.logits else output


class RunningBeamSearch(RunningSequence):
    """A beam search inside the pipeline, which reports no tokens before it ends."""

    def __init__(self, prompt: Sequence[int], width: int) -> None:
        """Begin with the prompt that is added to the pipeline, for `width` beams."""
        super().__init__(prompt)
        self._width = width

    def run(self) -> None:
        """Count a step that gave it rows: each of its beams has one more token."""
        self.length += 1
        self.beams = self._width


class LogitsControl:
    """Hands each row of a step's logits to the sequence it belongs to."""

    def __init__(self) -> None:
        """Begin with an empty pipeline."""
        self.seen = False  # whether there were logits since this was set
        # In the order in which they were added.
        self._running: list[RunningSequence] = []
        self._kept = np.empty((0, 0), np.float32)

    def enter(self, sequence: RunningSequence) -> None:
        """Note that a sequence was added to the pipeline."""
        self._running.append(sequence)

    def leave(self, sequence: RunningSequence) -> None:
        """Note that a sequence runs no more. May be called again."""
        if sequence in self._running:
            self._running.remove(sequence)

    def assume(self) -> None:
        """Take each beam search to have run in a step whose logits cannot be seen."""
        for item in self._running:
            if isinstance(item, RunningBeamSearch):
                item.run()

    def observe(
        self, logits: Floats, tokens: Integers, positions: Integers, offsets: Callable[[], Floats]
    ) -> None:
        """See logits_hook.LogitsCallback."""
        self.seen = True
        asking: list[SequenceLogits | PromptScores] = [
            *(item.logits for item in self._running if item.logits),
            *(item.scores for item in self._running if item.scores),
        ]
        # Only its rows show how far a beam search is: it may have to wait for its first step. And
        # only the step that begins to read a prompt shows what of it was cached.
        if not asking and not any(
            item.cached is None or isinstance(item, RunningBeamSearch) for item in self._running
        ):
            return
        try:
            self._observe(logits, tokens, positions, offsets)
        except Exception as error:  # noqa: BLE001  all that runs would be lost with it
            for item in asking:
                item.fail(f"{type(error).__name__}: {error}")

    def _observe(
        self, logits: Floats, tokens: Integers, positions: Integers, offsets: Callable[[], Floats]
    ) -> None:
        owners = row_owners(tokens, positions, self._running, len(logits))
        for beam_search in {owner for owner, _ in owners if isinstance(owner, RunningBeamSearch)}:
            beam_search.run()
        chosen = [
            (number, row.owner)
            for number, row in enumerate(owners)
            # No token is chosen from the rows inside a prompt.
            if row.position == row.owner.length - 1
        ]
        if len(self._kept) < len(chosen):
            # Once for all steps: allocating costs more than copying.
            self._kept = np.empty((len(chosen), logits.shape[-1]), np.float32)
        row_offsets = _RowOffsets(offsets)
        for kept, (number, owner) in zip(self._kept, chosen, strict=False):
            if owner.logits:
                owner.logits.observe(logits[number], kept, partial(row_offsets.row, number))
        for (owner, position), row in zip(owners, logits, strict=True):
            if owner.scores:
                owner.scores.observe(position, row)


class _RowOffsets:
    """The offsets of a step, made when the first sequence asks for its row."""

    def __init__(self, make: Callable[[], Floats]) -> None:
        self._make = make
        self._rows: Floats | None = None

    def row(self, number: int) -> Floats:
        if self._rows is None:
            self._rows = self._make()
        row: Floats = self._rows[number]
        return row
