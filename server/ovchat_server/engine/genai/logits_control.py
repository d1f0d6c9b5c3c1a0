"""Changes and records the logits of the sequences that ask for it, and of no others."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.genai.row_owners import row_owners
from ovchat_server.engine.scheduling.steps import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ovchat_server.engine.genai.logits_hook import Floats, Integers
    from ovchat_server.engine.genai.proposal_check import ProposalCheck
    from ovchat_server.engine.genai.sequence_logits import SequenceLogits
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores


class RunningSequence:
    """A sequence inside the pipeline; see row_owners.RowOwner."""

    def __init__(
        self,
        prompt: Sequence[int],
        logits: SequenceLogits | None = None,
        scores: PromptScores | None = None,
        check: ProposalCheck | None = None,
    ) -> None:
        """Begin with the prompt that is added to the pipeline.

        Args:
            prompt: Its tokens.
            logits: What is to be done with its logits.
            scores: Gathers the log probabilities of the prompt.
            check: Checks the proposed tokens at its end.
        """
        self.prompt = prompt
        self.check = check
        self.logits = logits
        self.scores = scores
        self.length = len(prompt)
        self.last: int | None = None
        self.beams = 1
        self._problem = ""
        # Where the first step began to read: the prefix cache had what is before.
        self.cached: int | None = None

    @property
    def echoes(self) -> bool:
        """Whether all tokens of the prompt make rows: until its scores are reported."""
        return self.scores is not None or self.check is not None

    def read_from(self, position: int) -> None:
        """See RowOwner."""
        if self.cached is None:
            self.cached = position

    def fail(self, problem: str) -> None:
        """Note why its tokens may be wrong; the next `report` says so."""
        self._problem = problem

    def grow(self, tokens: Sequence[int]) -> None:
        """Append tokens that the pipeline generated."""
        if tokens:
            self.length += len(tokens)
            self.last = tokens[-1]

    def check_row(self, position: int, row: Floats) -> None:
        """Check a proposed token, if one follows this position of the prompt."""
        if self.check:
            number = position + 1 - (len(self.prompt) - len(self.check.proposed))
            if 0 <= number < len(self.check.proposed):
                with self._alone():
                    self.check.observe(number, row)

    def choose_from(self, row: Floats, kept: Floats, offsets: Callable[[], Floats]) -> None:
        """Have the row observed from which its next token is chosen; see SequenceLogits.observe."""
        if self.logits and self._goes_on:
            with self._alone():
                self.logits.observe(row, kept, offsets)

    @property
    def _goes_on(self) -> bool:
        """Whether a token comes of the row behind its prompt: not behind proposed wrong ones."""
        return not self.check or self.check.whole

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let a fault, as of what follows its grammar, concern none of the others."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  whatever it is
            self.fail(f"{type(error).__name__}: {error}")

    def report(self, output: Output) -> Output:
        """Return a step's output as SequenceLogits.report does; check the prompt's scores."""
        # Its prompt was read when the first token came.
        scores, self.scores = self.scores, None
        goes_on, check, self.check = self._goes_on, self.check, None
        problem = self._problem or (scores.problem(len(self.prompt)) if scores else "")
        if problem:
            return Output([], [], MISATTRIBUTED, reason=problem)
        if self.logits and goes_on:
            output = self.logits.report(output)
        return check.report(output) if check and output.finish != MISATTRIBUTED else output


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
        # When there were logits for the last time, since it was set to 0.
        self.seen_at = 0.0
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

    @property
    def beams(self) -> int:
        """The number of sequences in the pipeline, each beam of a beam search counted."""
        return sum(item.beams for item in self._running)

    def assume(self) -> None:
        """Take each beam search to have run in a step whose logits cannot be seen."""
        for item in self._running:
            if isinstance(item, RunningBeamSearch):
                item.run()

    def observe(
        self, logits: Floats, tokens: Integers, positions: Integers, offsets: Callable[[], Floats]
    ) -> None:
        """See logits_hook.LogitsCallback."""
        self.seen_at = time.perf_counter()
        asking: list[SequenceLogits | PromptScores | RunningSequence] = [
            *(item.logits for item in self._running if item.logits),
            *(item.scores for item in self._running if item.scores),
            *(item for item in self._running if item.check),
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
        for beam_search in {
            row.owner for row in owners if isinstance(row.owner, RunningBeamSearch)
        }:
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
        for (owner, position), row in zip(owners, logits, strict=True):
            if owner.scores:
                owner.scores.observe(position, row)
            owner.check_row(position, row)
        row_offsets = _RowOffsets(offsets)
        for kept, (number, owner) in zip(self._kept, chosen, strict=False):
            owner.choose_from(logits[number], kept, partial(row_offsets.row, number))


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
