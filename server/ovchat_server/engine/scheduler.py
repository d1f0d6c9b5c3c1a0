"""Which sequences run: KV blocks are counted before the engine sees a sequence.

genai never gets to decide that its KV cache is full: when it does, it can hand one
request's tokens to another (reproduced on 2026.4.1), or drop requests that did no wrong.
So the sum of what the running sequences hold, and may need for the next step, stays within
the pool. Where a sequence cannot get its next block, the youngest gives up its place and
comes back later as prompt + tokens so far; its caller sees a pause.

A sequence whose whole answer follows a grammar cannot come back: the grammar would start anew.
It keeps its place, so those that run together may at most need the whole pool. What they do not
use yet is free to others, which give it up when it is needed. One that may call tools in free
text comes back with a grammar for the rest. Inside a call there is none: those give up their
place last, and begin again where they began before.
"""

from __future__ import annotations

import itertools
import sys
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ovchat_server.engine.messages import REFUSED, Add, Load, News, Report
from ovchat_server.engine.resumption import resumed
from ovchat_server.engine.sequence import ScheduledSequence

if TYPE_CHECKING:
    from collections.abc import Sequence

# A sequence may grow by one token in a step, and the one after it must have a place too.
LOOK_AHEAD_TOKENS = 2
# Times that a sequence the engine dropped without cause is offered again.
MAX_DROPS = 3


@dataclass(frozen=True, slots=True)
class Output:
    """Tokens of a sequence, and "stop" or "length" where it ended."""

    tokens: list[int]
    logprobs: list[float]
    finish: str | None = None

    def without(self, count: int) -> Output:
        """What is left without the first `count` tokens."""
        return Output(self.tokens[count:], self.logprobs[count:], self.finish)


class Handle(Protocol):
    """A sequence inside the pipeline, or a search for several."""

    def take(self) -> list[Output]:
        """What came since the last time; of a search all at once, when it ends."""
        ...

    def dropped(self) -> bool:
        """Whether the pipeline gave the sequence up by itself."""
        ...

    def cancel(self) -> None:
        """Give it up: its blocks are free after the next step."""
        ...


class Pipeline(Protocol):
    """What a scheduler steps. Driven by one thread."""

    def add(self, request: Add) -> Handle:
        """Take a sequence in; it runs from the next step on."""
        ...

    def step(self) -> None:
        """Run the model once over all sequences."""
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """Tokens as text, control tokens and all."""
        ...


class DroppedError(Exception):
    """The pipeline kept dropping a sequence."""


class Scheduler:
    """Admits, steps, preempts and cancels."""

    def __init__(self, pipeline: Pipeline, total_blocks: int, block_size: int) -> None:
        """Schedule over `total_blocks` KV blocks of `block_size` tokens."""
        self._pipeline = pipeline
        self._total = total_blocks
        self._block_size = block_size
        # Oldest first: the youngest is at the end.
        self._running: list[ScheduledSequence] = []
        self._waiting: deque[ScheduledSequence] = deque()
        # Blocks of cancelled sequences, which the pipeline frees in its next step.
        self._leaving = 0
        self._refused: list[News] = []
        self._peak_batch_size = 0
        self._generated_tokens = 0
        self._preemptions = 0

    @property
    def context_length(self) -> int:
        """Most tokens of prompt and answer that the pool holds for a sequence on its own."""
        return self.search_length(1)

    def search_length(self, width: int) -> int:
        """The same for each of the `width` beams of a search, should they share nothing."""
        return max((self._total - 1) // width * self._block_size - LOOK_AHEAD_TOKENS, 0)

    @property
    def busy(self) -> bool:
        """Whether a step would do something."""
        return bool(self._running or self._waiting or self._leaving or self._refused)

    def add(self, request: Add) -> None:
        """Take a sequence; it runs when there is room, in the order of coming."""
        self._waiting.append(ScheduledSequence(request))

    def cancel(self, identifier: int) -> None:
        """Give a sequence up. One that is not here any more is no error."""
        for sequence in self._running:
            if sequence.request.id == identifier:
                self._stop(sequence)
                return
        self._waiting = deque(item for item in self._waiting if item.request.id != identifier)

    def refuse(self, identifier: int) -> None:
        """Tell in the next report that a sequence will not run."""
        self._refused.append(News(identifier, 0, [], [], REFUSED))

    def step(self) -> Report:
        """Make room, admit, step, and tell what came of it.

        Raises:
            DroppedError: The pipeline will not run a sequence.
        """
        self._preempt()
        # The pipeline may drop a sequence that is added in the step that frees another's
        # blocks (genai 2026.4.1), so those go first.
        if not self._leaving:
            self._admit()
        self._pipeline.step()
        self._leaving = 0
        # The youngest first: so of several that were dropped the oldest is the next again.
        refused, self._refused = self._refused, []
        collected = [news for item in self._running[::-1] if (news := self._collect(item))]
        self._peak_batch_size = max(self._peak_batch_size, len(collected))
        return Report([*refused, *itertools.chain(*collected)], self.load())

    def load(self) -> Load:
        """How full the engine is."""
        return Load(
            running_requests=len(self._running),
            waiting_requests=len(self._waiting),
            # The next step preempts where the look-ahead does not fit.
            used_kv_blocks=min(self._held(), self._total),
            total_kv_blocks=self._total,
            peak_batch_size=self._peak_batch_size,
            generated_tokens=self._generated_tokens,
            preemptions=self._preemptions,
        )

    def _blocks(self, sequence: ScheduledSequence) -> int:
        """Blocks that a sequence has or may take in the next step."""
        return self._blocks_of(sequence.length) * sequence.request.beams

    def _blocks_of(self, length: int) -> int:
        return -(-(length + LOOK_AHEAD_TOKENS) // self._block_size)

    def _held(self) -> int:
        """Blocks that the running and leaving sequences have or may take in the next step."""
        return sum(map(self._blocks, self._running)) + self._leaving

    def _preempt(self) -> None:
        while len(self._running) > 1 and self._held() - self._leaving > self._total:
            self._preempt_one(self._preemptible())

    def _preempt_one(self, sequence: ScheduledSequence) -> None:
        self._stop(sequence)
        self._waiting.appendleft(sequence)
        self._preemptions += 1

    def _preemptible(self) -> ScheduledSequence:
        """The youngest of those that can go on where they are, or else of those that cannot."""
        free = [item for item in self._running[::-1] if not item.constrained]
        if not free:
            raise DroppedError("sequences that follow grammars took more than they may")
        return next(
            (item for item in free if self._grammar(item) or not item.request.grammar), free[0]
        )

    def _grammar(self, sequence: ScheduledSequence) -> str:
        """What the rest of a sequence follows."""
        request = sequence.request
        if not (sequence.tokens and request.resumptions):
            return request.grammar
        return resumed(request.grammar, request.resumptions, self._pipeline.text(sequence.tokens))

    def _admit(self) -> None:
        skipped: list[ScheduledSequence] = []
        while self._waiting:
            sequence = self._waiting[0]
            if sequence.constrained and (skipped or not self._has_place_to_the_end(sequence)):
                # It waits for others of its kind, which end by themselves. Those that can be
                # preempted need not wait with it.
                skipped.append(self._waiting.popleft())
                continue
            # One block more than needed now, or the newcomer is the next to be preempted.
            needed = self._blocks(sequence) + 1
            if self._running and self._held() + needed > self._total:
                break
            self._waiting.popleft()
            request = sequence.request
            try:
                sequence.handle = self._pipeline.add(sequence.next(self._grammar(sequence)))
            except Exception as error:  # noqa: BLE001  the pipeline checks before it takes in
                sys.stderr.write(f"the pipeline refused sequence {request.id}: {error}\n")
                self.refuse(request.id)
            else:
                self._running.append(sequence)
        self._waiting.extendleft(reversed(skipped))

    def _has_place_to_the_end(self, newcomer: ScheduledSequence) -> bool:
        """Whether the running sequences with grammars leave room for another's whole length."""
        constrained = [*filter(lambda item: item.constrained, self._running), newcomer]
        needed = sum(self._blocks_of(sequence.longest) for sequence in constrained)
        return len(constrained) == 1 or needed <= self._total

    def _stop(self, sequence: ScheduledSequence) -> None:
        """Take a running sequence out; its blocks are free after the next step."""
        if sequence.handle is not None:
            sequence.handle.cancel()
            sequence.handle = None
        self._running.remove(sequence)
        self._leaving += self._blocks(sequence)
        sequence.steps = 0

    def _collect(self, sequence: ScheduledSequence) -> list[News]:
        if sequence.handle is None:
            return []
        sequence.steps += 1
        outputs = sequence.handle.take()
        if outputs and sequence.repeated:
            # It follows a grammar, so it is no search.
            [output] = outputs
            count = sequence.repeats(output.tokens, ended=output.finish is not None)
            if count < 0:
                self._preempt_one(sequence)
                return []
            outputs = [output.without(count)] if count < len(output.tokens) else []
        for output in outputs:
            self._generated_tokens += len(output.tokens)
            sequence.tokens += output.tokens
        if outputs and outputs[0].finish is not None:
            self._running.remove(sequence)
        elif sequence.handle.dropped():
            self._offer_again(sequence)
        logprobs = sequence.request.logprobs
        return [
            News(
                sequence.request.id,
                index,
                output.tokens,
                output.logprobs if logprobs else [],
                output.finish,
            )
            for index, output in enumerate(outputs)
        ]

    def _offer_again(self, sequence: ScheduledSequence) -> None:
        sequence.drops += 1
        if sequence.constrained and sequence.tokens:
            raise DroppedError("the pipeline dropped a sequence that follows a grammar")
        if sequence.drops > MAX_DROPS:
            raise DroppedError(f"the pipeline dropped a sequence {sequence.drops} times")
        sequence.handle = None
        sequence.steps = 0
        self._running.remove(sequence)
        self._waiting.appendleft(sequence)
