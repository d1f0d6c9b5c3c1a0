"""Reads prompts in slices, so that long ones hold up neither streams nor short ones.

genai gives all that a step may read to the oldest prompt, and does not stop it halfway. So it gets
a long prompt piece by piece: each is a request of its own, for the prompt up to there and one
token, which is thrown away. What it read stays in the prefix cache, where the next one finds it.
With the last piece comes the request itself.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.engine.known_prefixes import KnownPrefixes
    from ovchat_server.engine.sequence import ScheduledSequence
    from ovchat_server.engine.step_budget import StepBudget
    from ovchat_server.engine.steps import Handle, Pipeline


@dataclass(slots=True, eq=False)
class _Prompt:
    """A prompt that is being read.

    Attributes:
        sequence: Whose it is.
        names: Of its blocks; see KnownPrefixes.
        piece: What runs of it.
        end: Tokens of the prompt up to the end of that.
        whole: Its pieces do not get through, so it is read in one.
    """

    sequence: ScheduledSequence
    names: list[int]
    piece: Handle | None = None
    end: int = 0
    whole: bool = False

    @property
    def length(self) -> int:
        return len(self.sequence.added.prompt)


class PromptReader:
    """Says what each step reads of which prompt: half of it of the one that is nearest to its end.

    The rest is for the oldest. So a short prompt need not wait for a long one, and no long one
    for ever.
    """

    def __init__(self, pipeline: Pipeline, known: KnownPrefixes, budget: StepBudget) -> None:
        """Read with a pipeline, as much in a step as the budget has."""
        self._pipeline = pipeline
        self._known = known
        self._budget = budget
        # Oldest first.
        self._prompts: list[_Prompt] = []
        # What the step reads, and the prompts that it comes to the end of.
        self._tokens = 0
        self._ending: list[_Prompt] = []

    def take(self, sequence: ScheduledSequence) -> None:
        """Read a sequence's prompt from the next step on."""
        self._prompts.append(_Prompt(sequence, self._known.names(sequence.added.prompt)))

    def drop(self, sequence: ScheduledSequence) -> None:
        """Stop reading a sequence's prompt, if it is being read."""
        for prompt in [item for item in self._prompts if item.sequence is sequence]:
            if prompt.piece is not None:
                prompt.piece.cancel()
            self._prompts.remove(prompt)

    def keep(self, sequence: ScheduledSequence) -> None:
        """A sequence does not run any more: the prefix cache has what it said."""
        if sequence.request.beams == 1:
            self._known.note(self._known.names([*sequence.request.prompt, *sequence.tokens]))

    def feed(self, streams: int) -> list[ScheduledSequence]:
        """Give the pipeline what the next step reads, beside `streams` sequences that run.

        Returns:
            Those the rest of whose prompts it reads: they are to be added whole.
        """
        self._tokens, self._ending = 0, []
        for prompt, start, end in self._plan(streams):
            self._tokens += end - start
            prompt.end = end
            if end < prompt.length:
                prompt.piece = self._pipeline.read(prompt.sequence.added.prompt[:end])
        # The oldest leads.
        self._ending = [prompt for prompt in self._prompts if prompt.end == prompt.length]
        for prompt in self._ending:
            self._prompts.remove(prompt)
        return [prompt.sequence for prompt in self._ending]

    def stepped(self, seconds: float) -> None:
        """Take note of what the step has read, in so many seconds."""
        if self._tokens:
            self._budget.note(self._tokens, seconds)
        for prompt in self._ending:
            self._known.note(prompt.names)
        self._tokens, self._ending = 0, []
        for prompt in self._prompts:
            if prompt.piece is None:
                continue
            if prompt.piece.take():
                self._known.note(prompt.names[: prompt.end // self._known.block_size])
                prompt.piece = None
            elif prompt.piece.dropped():
                sys.stderr.write(f"a piece of prompt {prompt.sequence.request.id} was dropped\n")
                prompt.piece = None
                prompt.whole = True

    def _plan(self, streams: int) -> Iterator[tuple[_Prompt, int, int]]:
        """Which prompts are read in the next step, from where up to where."""
        block = self._known.block_size
        starts = {
            # The last token is always read, or there would be nothing to go on from.
            prompt: min(self._known.length(prompt.names), prompt.length - 1)
            for prompt in self._prompts
            if prompt.piece is None
        }
        if not starts:
            return
        room = self._budget.max_tokens - streams
        left = min(self._budget.tokens, room)
        if not streams and all(item.length - start <= left for item, start in starts.items()):
            # Nobody waits for what comes of this step but they themselves.
            left = room
        nearest = min(starts, key=lambda item: item.length - starts[item])
        others = [item for item in starts if item is not nearest]
        long = left
        # Those of the same beginning wait until it was read, and need not read it again.
        begun: set[int] = set()
        for prompt in (nearest, *others):
            start, unread = starts[prompt], prompt.length - starts[prompt]
            share = left // 2 if prompt is nearest and others else left
            following = prompt.names[start // block : start // block + 1]
            if not begun.isdisjoint(following):
                continue
            if prompt.whole or unread <= share or long < 2 * block:
                end = prompt.length
            elif unread <= long and prompt is not nearest:
                # It fits into a step, so it waits for the next instead of taking two.
                continue
            else:
                end = (start + share) // block * block
            if end > start:
                begun.update(following)
                left -= end - start
                yield prompt, start, end
