"""Chunked prefill: reads prompts in slices, so that they hold up neither streams nor others.

genai gives all that a step may read to the oldest prompt, and does not stop it halfway. So it gets
a long prompt slice by slice: each is a request of its own, for the prompt up to there and one
token, which is dropped. What it read stays in the prefix cache, where the next slice finds it.
With the last slice the request itself is added.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.engine.scheduling.partial_blocks import PartialBlocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ovchat_server.engine.scheduling.cached_prefixes import KnownPrefixes
    from ovchat_server.engine.scheduling.partial_blocks import PartialBlock
    from ovchat_server.engine.scheduling.sequence import ScheduledSequence
    from ovchat_server.engine.scheduling.step_budget import StepBudget
    from ovchat_server.engine.scheduling.steps import Handle, Pipeline

# The kernels take as long for some more rows as for the next multiple of this: 130 tokens, those of
# running sequences among them, as long as 192 (OpenVINO 2026.4.1, AMX).
ROWS = 128
# Steps that short prompts have for each that long ones have.
SHORT_TURNS = 2


@dataclass(slots=True, eq=False)
class _Prompt:
    """A prompt that is being read.

    Attributes:
        sequence: The sequence.
        names: The names of its blocks; see KnownPrefixes.
        start: The number of its tokens that the prefix cache has.
        end: The number of its tokens up to the end of the slice being read.
        piece: The slice being read.
        whole: Whether it is read at once, because the pipeline dropped a slice.
        inside: The partial blocks of others that it may continue in.
    """

    sequence: ScheduledSequence
    names: list[int]
    start: int = 0
    end: int = 0
    piece: Handle | None = None
    whole: bool = False
    inside: set[PartialBlock] = field(default_factory=set)

    @property
    def length(self) -> int:
        return len(self.sequence.added.generation.prompt)

    @property
    def unread(self) -> int:
        return self.length - self.start


class PromptReader:
    """Decides what each step reads of which prompt.

    Prompts whose rest fits into a step and long ones take turns, and of the long ones the one
    that is nearest to its end and the oldest share a step. So a short prompt need not wait for a
    long one, and no long one waits forever. What a step reads of all together keeps to the budget:
    who has its first token is a stream, which those that came with it would hold up.
    """

    def __init__(self, pipeline: Pipeline, known: KnownPrefixes, budget: StepBudget) -> None:
        """Read with a pipeline, as much in a step as the budget allows."""
        self._pipeline = pipeline
        self._known = known
        # An answer is noted with its last token and without.
        self._partial = PartialBlocks(2 * known.capacity, known.block_size)
        # Prompts that may still be in a partial block that others find.
        self._inside: list[_Prompt] = []
        self._budget = budget
        # Oldest first.
        self._prompts: list[_Prompt] = []
        # Steps that short prompts had since the last of a long one.
        self._short_turns = 0
        # The tokens that the step reads, and the prompts that it finishes.
        self._tokens = 0
        self._ending: list[_Prompt] = []

    def take(self, sequence: ScheduledSequence) -> None:
        """Read a sequence's prompt from the next step on."""
        names = self._known.names(sequence.cache_ids)
        sequence.read_before = self._known.read_before(names)
        self._prompts.append(_Prompt(sequence, names))

    def drop(self, sequence: ScheduledSequence) -> None:
        """Stop reading a sequence's prompt, if it is being read."""
        self._prompts = [item for item in self._prompts if item.sequence is not sequence]
        self._inside = [item for item in self._inside if item.sequence is not sequence]

    def piece(self, sequence: ScheduledSequence) -> Handle | None:
        """Return the slice being read of a sequence's prompt, if there is one."""
        pieces = (prompt.piece for prompt in self._prompts if prompt.sequence is sequence)
        return next(pieces, None)

    def keep(self, sequence: ScheduledSequence) -> None:
        """Note what the prefix cache has of a sequence that does not run any more."""
        texts = sequence.texts()
        names = self._known.names(texts[0])
        for text in texts:
            self._partial.note(text, names)
        if sequence.request.generation.beams == 1:
            self._known.note(names)

    def feed(self, running: Sequence[ScheduledSequence]) -> list[ScheduledSequence]:
        """Give the pipeline the slices that the next step reads, beside running sequences.

        Returns:
            The sequences whose prompts it finishes, which are to be added themselves.
        """
        self._tokens, self._ending = 0, []
        beside = sum(item.step_tokens for item in running)
        for prompt, end in self._undisputed([*self._scorable(self._plan(beside))], running):
            self._tokens += end - prompt.start
            prompt.end = end
            if end < prompt.length:
                prompt.piece = self._read(prompt, end)
        # The oldest leads.
        self._ending = [prompt for prompt in self._prompts if prompt.end == prompt.length]
        for prompt in self._ending:
            self._prompts.remove(prompt)
        return [prompt.sequence for prompt in self._ending]

    def stepped(self, seconds: float | None) -> None:
        """Note that the step is over, and how long it took; None: that says nothing of others."""
        if seconds is not None:
            self._budget.note(self._tokens, seconds)
        for prompt in self._ending:
            self._known.note(prompt.names)
        self._tokens, self._ending = 0, []
        for prompt in self._prompts:
            if prompt.piece is None:
                continue
            if prompt.piece.take():
                prompt.sequence.note_cached(prompt.piece)
                self._known.note(prompt.names[: prompt.end // self._known.block_size])
                prompt.piece = None
            elif prompt.piece.dropped():
                sys.stderr.write(f"a piece of prompt {prompt.sequence.request.id} was dropped\n")
                prompt.piece = None
                prompt.whole = True

    def _read(self, prompt: _Prompt, end: int) -> Handle | None:
        sequence = prompt.sequence
        try:
            beginning = sequence.added.generation.prompt.beginning(end)
            return self._pipeline.read(beginning, sequence.scores)
        except Exception as error:  # noqa: BLE001  the pipeline checks before it takes in
            sys.stderr.write(f"a piece of prompt {sequence.request.id} was refused: {error}\n")
            # So it is refused alone, when it is added.
            prompt.whole = True
            return None

    def _scorable(self, plan: Iterable[tuple[_Prompt, int]]) -> Iterator[tuple[_Prompt, int]]:
        """Limit the tokens of prompts that are scored to what a step should have."""
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
        """Leave out prompts that would continue in the same partial block as one before them."""
        self._inside = [prompt for prompt in self._inside if self._findable(prompt)]
        taken = set().union(*(prompt.inside for prompt in self._inside))
        for prompt, end in plan:
            text = prompt.sequence.cache_ids[:end]
            self._note_beginnings(text, prompt.names, running)
            blocks = self._partial.of(text, prompt.names)
            if taken.isdisjoint(blocks):
                taken |= blocks
                if blocks:
                    prompt.inside = blocks
                    self._inside.append(prompt)
                yield prompt, end

    def _findable(self, prompt: _Prompt) -> bool:
        """Return whether the partial block that a prompt continued in may still be found.

        It gets another name when the prompt is read beyond it, which may take genai several steps,
        or with the token after it. A prompt that finds it before shares it, which makes genai copy
        it for one that continues in it, but not for one that has filled it.
        """
        handle = prompt.piece or prompt.sequence.handle
        # Whatever block it continues in: a beam search may have left others after that one.
        full = prompt.length % self._known.block_size == 0
        return handle is not None and handle.answered <= full

    def _note_beginnings(
        self, prompt: Sequence[int], names: Sequence[int], running: Sequence[ScheduledSequence]
    ) -> None:
        """Note the texts of running sequences that the prompt continues; all as cache ids."""
        for sequence in running:
            beginning = sequence.prompt_ids
            if prompt[: len(beginning)] != beginning:
                continue
            for text in sequence.texts():
                if prompt[: len(text)] == text:
                    self._partial.note(text, names)

    def _plan(self, beside: int) -> Iterator[tuple[_Prompt, int]]:
        """Yield the prompts that the next step reads `beside` other tokens, and up to where."""
        room = self._budget.max_tokens - beside
        most = _worth_it(min(self._budget.tokens(streaming=beside > 0), room), beside)
        prompts = [prompt for prompt in self._distinct() if prompt.piece is None]
        # Where there is no room for blocks, genai splits prompts as it likes.
        whole = [item for item in prompts if item.whole or most < 2 * self._known.block_size]
        if whole:
            yield whole[0], whole[0].length
            return
        short = [item for item in prompts if item.unread <= most]
        long = [item for item in prompts if item not in short]
        if short and not (long and self._short_turns >= SHORT_TURNS):
            self._short_turns += 1
            yield from self._in_turn(short, most)
        else:
            self._short_turns = 0
            yield from self._some_of(long, most)

    def _in_turn(self, prompts: Sequence[_Prompt], tokens: int) -> Iterator[tuple[_Prompt, int]]:
        """Fill the tokens with prompts as they came; the last may be cut where a block ends."""
        block = self._known.block_size
        for prompt in prompts:
            if prompt.unread > tokens:
                yield prompt, (prompt.start + tokens) // block * block
                return
            yield prompt, prompt.length
            tokens -= prompt.unread

    def _some_of(self, prompts: list[_Prompt], tokens: int) -> Iterator[tuple[_Prompt, int]]:
        """Share the tokens between the prompt nearest to its end and the oldest of the others."""
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
        """Yield the prompts, oldest first, whose next blocks differ.

        Others wait until the blocks that they share were read, and need not read them again.
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


def _worth_it(tokens: int, beside: int) -> int:
    """Round the number of tokens to read to full rows, beside those of running sequences."""
    rows = (tokens + beside) // ROWS * ROWS
    return rows - beside if rows - beside >= ROWS // 2 else tokens
