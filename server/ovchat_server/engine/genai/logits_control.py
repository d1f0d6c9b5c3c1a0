"""Changes and records the logits of the sequences that ask for it, and of no others."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.genai.row_owners import row_owners
from ovchat_server.engine.scheduling.steps import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.engine.genai.logits_hook import Floats, Integers
    from ovchat_server.engine.genai.sequence_logits import SequenceLogits
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores


class RunningSequence:
    """A sequence inside the pipeline; see row_owners.RowOwner."""

    def __init__(
        self,
        prompt: Sequence[int],
        logits: SequenceLogits | None = None,
        scores: PromptScores | None = None,
        rows: int = 1,
    ) -> None:
        """Begin with the prompt that is added to the pipeline.

        Args:
            prompt: Its tokens.
            logits: What is to be done with its logits.
            scores: Gathers the log probabilities of the prompt.
            rows: How many tokens a step reads of it after the prompt.
        """
        self.prompt = prompt
        self.rows = rows
        self.logits = logits
        self.scores = scores
        self.length = len(prompt)
        self.last: int | None = None
        self.beams = 1
        # The tokens that are proposed to the step.
        self.proposed: list[int] = []
        self._problem = ""
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

    def fail(self, problem: str) -> None:
        """Note why its tokens may be wrong; the next `report` says so."""
        self._problem = problem

    def grow(self, tokens: Sequence[int]) -> None:
        """Append tokens that the pipeline generated."""
        if tokens:
            self.length += len(tokens)
            self.last = tokens[-1]

    def report(self, output: Output) -> Output:
        """Return a step's output as SequenceLogits.report does; check the prompt's scores."""
        # Its prompt was read when the first token came.
        scores, self.scores = self.scores, None
        proposed, self.proposed = self.proposed, []
        problem = self._problem or (scores.problem(len(self.prompt)) if scores else "")
        if problem:
            return Output([], [], MISATTRIBUTED, reason=problem)
        if self.logits:
            output = self.logits.report(output)
        if proposed:
            same = (token == other for token, other in zip(output.tokens, proposed, strict=False))
            accepted = sum(itertools.takewhile(bool, same))
            output = replace(output, accepted=accepted, rejected=len(proposed) - accepted)
        return output


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
        asking: list[SequenceLogits | PromptScores | RunningSequence] = [
            *(item.logits for item in self._running if item.logits),
            *(item.scores for item in self._running if item.scores),
            # Where genai did not read all that is proposed, it errs.
            *(item for item in self._running if item.rows > 1),
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
        owning = {row.owner for row in owners}
        for beam_search in {item for item in owning if isinstance(item, RunningBeamSearch)}:
            beam_search.run()
        for row in owners:
            # A negative number is padding, where less was found than may be proposed.
            if row.proposed and row.token >= 0:
                row.owner.proposed.append(row.token)
        chosen = [
            (number, row) for number, row in enumerate(owners) if row.owner.logits and row.chooses
        ]
        if len(self._kept) < len(chosen):
            # Once for all steps: allocating costs more than copying.
            self._kept = np.empty((len(chosen), logits.shape[-1]), np.float32)
        row_offsets = _RowOffsets(offsets)
        for kept, (number, row) in zip(self._kept, chosen, strict=False):
            if asked := row.owner.logits:
                proposed = row.token if row.proposed else None
                asked.observe(logits[number], kept, partial(row_offsets.row, number), proposed)
        for row, values in zip(owners, logits, strict=True):
            if row.owner.scores:
                row.owner.scores.observe(row.position, values)


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
