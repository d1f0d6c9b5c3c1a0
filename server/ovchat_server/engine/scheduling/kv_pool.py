"""The number of KV blocks that sequences take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.engine.scheduling.sequence import ScheduledSequence

# A sequence may grow by one token in a step, and there must be room for the token after it.
LOOK_AHEAD_TOKENS = 2


@dataclass(frozen=True, slots=True)
class KvPool:
    """A pool of `total` blocks of `block_size` tokens."""

    total: int
    block_size: int

    def max_length(self, width: int) -> int:
        """Return the maximum number of tokens of each of `width` sequences that share no blocks."""
        return max((self.total - 1) // width * self.block_size - LOOK_AHEAD_TOKENS, 0)

    def held(self, sequence: ScheduledSequence) -> int:
        """Return the number of blocks that a sequence has, or may have after the next step."""
        return self.blocks(sequence.length) * sequence.request.generation.beams

    def admission_blocks(self, sequence: ScheduledSequence) -> int:
        """Return the number of blocks that admission leaves room for."""
        return self.blocks(sequence.admission_length) * sequence.request.generation.beams

    def needed(self, newcomer: ScheduledSequence) -> int:
        """Return the number of blocks that must be free to admit a sequence.

        It is one more than needed now if the sequence may grow further: it would be preempted
        next otherwise.
        """
        return self.admission_blocks(newcomer) + (
            0 if newcomer.request.generation.reserve_max_tokens else 1
        )

    def max_blocks(self, sequence: ScheduledSequence) -> int:
        """Return the number of blocks of a sequence at its maximum length."""
        return self.blocks(sequence.max_length) * sequence.request.generation.beams

    def blocks(self, length: int) -> int:
        """Return the number of blocks of a sequence of `length` tokens."""
        return -(-(length + LOOK_AHEAD_TOKENS) // self.block_size)
