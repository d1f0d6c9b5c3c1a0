"""How many KV blocks sequences hold and need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.engine.scheduling.sequence import ScheduledSequence

# A sequence may grow by one token in a step, and there must be room for the one after it.
LOOK_AHEAD_TOKENS = 2


@dataclass(frozen=True, slots=True)
class KvPool:
    """A pool of `total` blocks of `block_size` tokens."""

    total: int
    block_size: int

    def longest(self, width: int) -> int:
        """Return the most tokens that fit for each of `width` sequences that share no blocks."""
        return max((self.total - 1) // width * self.block_size - LOOK_AHEAD_TOKENS, 0)

    def held(self, sequence: ScheduledSequence) -> int:
        """Return the blocks that a sequence holds, or may hold after the next step."""
        return self.blocks(sequence.length) * sequence.request.generation.beams

    def expected(self, sequence: ScheduledSequence) -> int:
        """Return the blocks that others must leave to a sequence."""
        return self.blocks(sequence.expected) * sequence.request.generation.beams

    def needed(self, newcomer: ScheduledSequence) -> int:
        """Return the free blocks that a sequence needs to be admitted.

        One more than it needs now if it may grow, or it would be the next to be preempted.
        """
        return self.expected(newcomer) + (0 if newcomer.request.generation.reserve else 1)

    def at_most(self, sequence: ScheduledSequence) -> int:
        """Return the most blocks that a sequence can come to hold."""
        return self.blocks(sequence.longest) * sequence.request.generation.beams

    def blocks(self, length: int) -> int:
        """Return the blocks of a sequence of `length` tokens, with its look-ahead."""
        return -(-(length + LOOK_AHEAD_TOKENS) // self.block_size)
