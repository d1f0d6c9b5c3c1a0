"""The number of KV blocks that sequences take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.engine.contract.speculation import NO_SPECULATION, Speculation

if TYPE_CHECKING:
    from ovchat_server.engine.scheduling.sequence import ScheduledSequence


@dataclass(frozen=True, slots=True)
class KvPool:
    """A pool of `total` blocks of `block_size` tokens.

    Attributes:
        most: The most that sequences may speculate.
    """

    total: int
    block_size: int
    most: Speculation = NO_SPECULATION

    def max_length(self, width: int) -> int:
        """Return the maximum number of tokens of each of `width` sequences that share no blocks."""
        return max((self.total - 1) // width * self.block_size - self.most.look_ahead, 0)

    def held(self, sequence: ScheduledSequence) -> int:
        """Return the number of blocks that a sequence has, or may have after the next step."""
        return self._blocks(sequence, sequence.length)

    def admission_blocks(self, sequence: ScheduledSequence) -> int:
        """Return the number of blocks that admission leaves room for."""
        return self._blocks(sequence, sequence.admission_length)

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
        return self._blocks(sequence, sequence.max_length)

    def _blocks(self, sequence: ScheduledSequence, length: int) -> int:
        """Return the number of blocks of a sequence, or of its beams, of `length` tokens."""
        generation = sequence.request.generation
        room = length + generation.speculation.look_ahead
        return -(-room // self.block_size) * generation.beams
