"""Which sequences run: KV blocks are counted before the engine sees a sequence.

genai never gets to decide that its KV cache is full: when it does, it can hand one
request's tokens to another (reproduced on 2026.4.1), or drop requests that did no wrong.
So the sum of what the running sequences hold, and may need for the next step, stays within
the pool. Where a sequence cannot get its next block, the youngest gives up its place and
comes back later as prompt + tokens so far; its caller sees a pause.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ovchat_server.engine.messages import REFUSED, Add, Load, News, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

# A sequence may grow by one token in a step, and the one after it must have a place too.
LOOK_AHEAD_TOKENS = 2
# Times that a sequence the engine dropped without cause is offered again.
MAX_DROPS = 3


class Handle(Protocol):
    """A sequence inside the pipeline."""

    def take(self) -> tuple[list[int], str | None]:
        """Tokens since the last time, and "stop" or "length" where it ended."""
        ...

    def dropped(self) -> bool:
        """Whether the pipeline gave the sequence up by itself."""
        ...

    def cancel(self) -> None:
        """Give it up: its blocks are free after the next step."""
        ...


class Pipeline(Protocol):
    """What a scheduler steps. Driven by one thread."""

    def add(self, request: Add, prompt: Sequence[int], max_tokens: int, seed: int) -> Handle:
        """Take a sequence in; it runs from the next step on."""
        ...

    def step(self) -> None:
        """Run the model once over all sequences."""
        ...


class DroppedError(Exception):
    """The pipeline kept dropping a sequence."""


@dataclass(slots=True)
class _Sequence:
    request: Add
    tokens: list[int] = field(default_factory=list)
    handle: Handle | None = None
    drops: int = 0

    @property
    def length(self) -> int:
        return len(self.request.prompt) + len(self.tokens)


class Scheduler:
    """Admits, steps, preempts and cancels."""

    def __init__(self, pipeline: Pipeline, total_blocks: int, block_size: int) -> None:
        """Schedule over `total_blocks` KV blocks of `block_size` tokens."""
        self._pipeline = pipeline
        self._total = total_blocks
        self._block_size = block_size
        # Oldest first: the youngest is at the end.
        self._running: list[_Sequence] = []
        self._waiting: deque[_Sequence] = deque()
        # Blocks of cancelled sequences, which the pipeline frees in its next step.
        self._leaving = 0
        self._refused: list[News] = []
        self._peak_batch_size = 0
        self._generated_tokens = 0
        self._preemptions = 0

    @property
    def context_length(self) -> int:
        """Most tokens of prompt and answer that the pool holds for a sequence on its own."""
        return (self._total - 1) * self._block_size - LOOK_AHEAD_TOKENS

    @property
    def busy(self) -> bool:
        """Whether a step would do something."""
        return bool(self._running or self._waiting or self._leaving)

    def add(self, request: Add) -> None:
        """Take a sequence; it runs when there is room, in the order of coming."""
        self._waiting.append(_Sequence(request))

    def cancel(self, identifier: int) -> None:
        """Give a sequence up. One that is not here any more is no error."""
        for sequence in self._running:
            if sequence.request.id == identifier:
                self._stop(sequence)
                return
        self._waiting = deque(item for item in self._waiting if item.request.id != identifier)

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
        news = [item for sequence in self._running[::-1] if (item := self._collect(sequence))]
        self._peak_batch_size = max(self._peak_batch_size, len(news))
        return Report(refused + news, self.load())

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

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self._block_size)

    def _held(self) -> int:
        """Blocks that the running and leaving sequences have or may take in the next step."""
        running = sum(self._blocks(item.length + LOOK_AHEAD_TOKENS) for item in self._running)
        return running + self._leaving

    def _preempt(self) -> None:
        while len(self._running) > 1 and self._held() - self._leaving > self._total:
            youngest = self._running[-1]
            self._stop(youngest)
            self._waiting.appendleft(youngest)
            self._preemptions += 1

    def _admit(self) -> None:
        while self._waiting:
            sequence = self._waiting[0]
            # One block more than needed now, or the newcomer is the next to be preempted.
            needed = self._blocks(sequence.length + LOOK_AHEAD_TOKENS) + 1
            if self._running and self._held() + needed > self._total:
                return
            self._waiting.popleft()
            request = sequence.request
            try:
                sequence.handle = self._pipeline.add(
                    request,
                    [*request.prompt, *sequence.tokens],
                    request.max_tokens - len(sequence.tokens),
                    # A resumed sequence must not draw the same random numbers again.
                    (request.seed + len(sequence.tokens)) % 2**32,
                )
            except Exception as error:  # noqa: BLE001  the pipeline checks before it takes in
                sys.stderr.write(f"the pipeline refused sequence {request.id}: {error}\n")
                self._refused.append(News(request.id, [], REFUSED))
            else:
                self._running.append(sequence)

    def _stop(self, sequence: _Sequence) -> None:
        """Take a running sequence out; its blocks are free after the next step."""
        if sequence.handle is not None:
            sequence.handle.cancel()
            sequence.handle = None
        self._running.remove(sequence)
        self._leaving += self._blocks(sequence.length + LOOK_AHEAD_TOKENS)

    def _collect(self, sequence: _Sequence) -> News | None:
        if sequence.handle is None:
            return None
        tokens, finish = sequence.handle.take()
        sequence.tokens += tokens
        self._generated_tokens += len(tokens)
        if finish is not None:
            self._running.remove(sequence)
        elif sequence.handle.dropped():
            self._offer_again(sequence)
        if tokens or finish:
            return News(sequence.request.id, tokens, finish)
        return None

    def _offer_again(self, sequence: _Sequence) -> None:
        sequence.drops += 1
        if sequence.drops > MAX_DROPS:
            raise DroppedError(f"the pipeline dropped a sequence {sequence.drops} times")
        sequence.handle = None
        self._running.remove(sequence)
        self._waiting.appendleft(sequence)
