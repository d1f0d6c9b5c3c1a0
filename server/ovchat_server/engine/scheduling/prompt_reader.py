"""Reads prompts in slices, so that long ones hold up neither streams nor short ones.

genai gives all that a step may read to the oldest prompt, and does not stop it halfway. So it gets
a long prompt piece by piece: each is a request of its own, for the prompt up to there and one
token, which is thrown away. What it read stays in the prefix cache, where the next one finds it.
With the last piece comes the request itself.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.engine.scheduling.partial_blocks import OpenBlocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ovchat_server.engine.scheduling.cached_prefixes import KnownPrefixes
    from ovchat_server.engine.scheduling.partial_blocks import OpenBlock
    from ovchat_server.engine.scheduling.sequence import ScheduledSequence
    from ovchat_server.engine.scheduling.step_budget import StepBudget
    from ovchat_server.engine.scheduling.steps import Handle, Pipeline

# The kernels take as long for some more rows as for the next multiple of this: 130 tokens, those of
# running sequences among them, as long as 192 (OpenVINO 2026.4.1, AMX).
ROWS = 128
# So many times the budget may be read of prompts that fit into it one by one.
TIMES_TOGETHER = 4


@dataclass(slots=True, eq=False)
class _Prompt:
    """A prompt that is being read.

    Attributes:
        sequence: Whose it is.
        names: Of its blocks; see KnownPrefixes.
        start: Tokens of it that are known.
        end: Tokens of it up to the end of what is being read.
        piece: What runs of it.
        whole: Its pieces do not get through, so it is read in one.
        inside: The open blocks of others that it may go on in.
    """

    sequence: ScheduledSequence
    names: list[int]
    start: int = 0
    end: int = 0
    piece: Handle | None = None
    whole: bool = False
    inside: set[OpenBlock] = field(default_factory=set)

    @property
    def length(self) -> int:
        return len(self.sequence.added.generation.prompt)

    @property
    def unread(self) -> int:
        return self.length - self.start


class PromptReader:
    """Says what each step reads of which prompt.

    Those whose rest fits into a step and the long ones take turns, and of the long ones the one
    that is nearest to its end and the oldest share a step. So a short prompt need not wait for a
    long one, and no long one waits for ever.
    """

    def __init__(self, pipeline: Pipeline, known: KnownPrefixes, budget: StepBudget) -> None:
        """Read with a pipeline, as much in a step as the budget has."""
        self._pipeline = pipeline
        self._known = known
        # An answer is noted with its last token and without.
        self._open = OpenBlocks(2 * known.capacity, known.block_size)
        # Those that may still be in a block that others find.
        self._inside: list[_Prompt] = []
        self._budget = budget
        # Oldest first.
        self._prompts: list[_Prompt] = []
        self._short_turn = False
        # What the step reads, and the prompts that it comes to the end of.
        self._tokens = 0
        self._ending: list[_Prompt] = []

    def take(self, sequence: ScheduledSequence) -> None:
        """Read a sequence's prompt from the next step on."""
        self._prompts.append(_Prompt(sequence, self._known.names(sequence.added.generation.prompt)))

    def drop(self, sequence: ScheduledSequence) -> None:
        """Stop reading a sequence's prompt, if it is being read."""
        self._prompts = [item for item in self._prompts if item.sequence is not sequence]
        self._inside = [item for item in self._inside if item.sequence is not sequence]

    def piece(self, sequence: ScheduledSequence) -> Handle | None:
        """What runs of a sequence whose prompt is being read."""
        pieces = (prompt.piece for prompt in self._prompts if prompt.sequence is sequence)
        return next(pieces, None)

    def keep(self, sequence: ScheduledSequence) -> None:
        """A sequence does not run any more: the prefix cache has what it said."""
        texts = sequence.texts()
        names = self._known.names(texts[0])
        for text in texts:
            self._open.note(text, names)
        if sequence.request.generation.beams == 1:
            self._known.note(names)

    def feed(self, running: Sequence[ScheduledSequence]) -> list[ScheduledSequence]:
        """Give the pipeline what the next step reads, beside the sequences that run.

        Returns:
            Those the rest of whose prompts it reads: they are to be added whole.
        """
        self._tokens, self._ending = 0, []
        streams = sum(item.request.generation.beams for item in running)
        for prompt, end in self._undisputed([*self._scorable(self._plan(streams))], running):
            self._tokens += end - prompt.start
            prompt.end = end
            if end < prompt.length:
                sequence = prompt.sequence
                prompt.piece = self._pipeline.read(
                    sequence.added.generation.prompt[:end], sequence.scores
                )
        # The oldest leads.
        self._ending = [prompt for prompt in self._prompts if prompt.end == prompt.length]
        for prompt in self._ending:
            self._prompts.remove(prompt)
        return [prompt.sequence for prompt in self._ending]

    def stepped(self, seconds: float) -> None:
        """Take note of what the step has read, in so many seconds."""
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

    def _scorable(self, plan: Iterable[tuple[_Prompt, int]]) -> Iterator[tuple[_Prompt, int]]:
        """With no more of those whose tokens are told of than a step should have."""
        left = self._pipeline.scored_tokens
        for prompt, end in plan:
            if prompt.sequence.scores and not prompt.whole:
                if end - prompt.start > left:
                    block = self._known.block_size
                    end = (prompt.start + left) // block * block  # noqa: PLW2901
                left -= max(end - prompt.start, 0)
            if end > prompt.start:
                yield prompt, end

    def _undisputed(
        self, plan: Sequence[tuple[_Prompt, int]], running: Sequence[ScheduledSequence]
    ) -> Iterator[tuple[_Prompt, int]]:
        """Without those that go on in the same open block as one before them."""
        self._inside = [prompt for prompt in self._inside if self._findable(prompt)]
        taken = set().union(*(prompt.inside for prompt in self._inside))
        for prompt, end in plan:
            tokens = prompt.sequence.added.generation.prompt[:end]
            self._note_beginnings(tokens, prompt.names, running)
            blocks = self._open.of(tokens, prompt.names)
            if taken.isdisjoint(blocks):
                taken |= blocks
                if blocks:
                    prompt.inside = blocks
                    self._inside.append(prompt)
                yield prompt, end

    def _findable(self, prompt: _Prompt) -> bool:
        """Whether the open block that it went on in may still have the name it was found under.

        It gets another when the prompt is read beyond it, which may take genai several steps, or
        with the token after it. Who finds it before shares it, which makes genai copy it for who
        goes on in it, but not for who has filled it.
        """
        handle = prompt.piece or prompt.sequence.handle
        # Whatever block it is known to go on in: a search may have left others behind that one.
        full = prompt.length % self._known.block_size == 0
        return handle is not None and handle.answered <= full

    def _note_beginnings(
        self, prompt: Sequence[int], names: Sequence[int], running: Sequence[ScheduledSequence]
    ) -> None:
        """Note what runs, as far as the prompt goes on from it."""
        for sequence in running:
            begun = sequence.prompt
            if prompt[: len(begun)] != begun:
                continue
            for text in sequence.texts():
                if prompt[: len(text)] == text:
                    self._open.note(text, names)

    def _plan(self, streams: int) -> Iterator[tuple[_Prompt, int]]:
        """Which prompts the next step reads, and up to where."""
        room = self._budget.max_tokens - streams
        most = min(self._budget.tokens(streaming=streams > 0), room)
        prompts = [prompt for prompt in self._distinct() if prompt.piece is None]
        # Where there is no room for blocks, genai splits prompts as it likes.
        whole = most < 2 * self._known.block_size
        short = [item for item in prompts if whole or item.whole or item.unread <= most]
        long = [item for item in prompts if item not in short]
        self._short_turn = bool(short) and not (long and self._short_turn)
        if not self._short_turn:
            yield from self._some_of(long, _worth_it(most, streams))
            return
        # Together they take less of everybody's time than in steps of their own. Where nobody else
        # waits for the step it may take as long as it likes.
        left = min(TIMES_TOGETHER * most, room) if streams or long else room
        for number, prompt in enumerate(short):
            if number and prompt.unread > left:
                break
            left -= prompt.unread
            yield prompt, prompt.length

    def _some_of(self, prompts: list[_Prompt], tokens: int) -> Iterator[tuple[_Prompt, int]]:
        """Of the prompt that is nearest to its end, and as much of the oldest of the others."""
        if not prompts:
            return
        nearest = min(prompts, key=lambda item: item.unread)
        chosen = [nearest, *(item for item in prompts if item is not nearest)][:2]
        block = self._known.block_size
        for prompt in chosen:
            end = (prompt.start + tokens // len(chosen)) // block * block
            if end > prompt.start:
                yield prompt, end

    def _distinct(self) -> Iterator[_Prompt]:
        """Prompts, the oldest first, that go on differently.

        Others wait until what they have in common was read, and need not read it again.
        """
        following: set[int] = set()
        for prompt in self._prompts:
            known = self._known.length(prompt.names)
            # The last token is always read, or there would be nothing to go on from.
            prompt.start = min(known, prompt.length - 1)
            next_block = prompt.names[known // self._known.block_size :][:1]
            if following.isdisjoint(next_block):
                following.update(next_block)
                yield prompt


def _worth_it(tokens: int, streams: int) -> int:
    """How many of these tokens to read, beside so many sequences that run."""
    rows = (tokens + streams) // ROWS * ROWS
    return rows - streams if rows - streams >= ROWS // 2 else tokens
