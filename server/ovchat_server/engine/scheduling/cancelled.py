"""Sequences that were cancelled and are still inside the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.engine.scheduling.steps import Handle


class CancelledSequences:
    """Cancels sequences when that is safe, and counts the blocks that they have until then.

    A prompt that is being read is read to its end first: genai hashes blocks by their tokens when
    it begins to read. If the prompt were cancelled before its end, blocks would be found by these
    hashes that never had the tokens (2026.4.1; block_manager.hpp, allocate).
    """

    def __init__(self) -> None:
        """Start without sequences."""
        self._reading: list[tuple[Handle, int]] = []
        # Their blocks, which the next step frees.
        self.cancelled = 0

    @property
    def blocks(self) -> int:
        """The number of blocks that are not free yet."""
        return self.cancelled + sum(blocks for _, blocks in self._reading)

    def give_up(self, handle: Handle | None, blocks: int, *, read: bool = False) -> None:
        """Cancel a sequence, now or once its prompt was read.

        Args:
            handle: The sequence, or the slice of its prompt, inside the pipeline; None if neither.
            blocks: The number of its blocks.
            read: Whether its prompt was read, though no token was generated.
        """
        if handle is not None and not (read or handle.answered):
            self._reading.append((handle, blocks))
            return
        if handle is not None:
            handle.cancel()
        self.cancelled += blocks

    def stepped(self) -> None:
        """Note that the pipeline made a step, which freed the blocks cancelled before."""
        self.cancelled = 0
        reading, self._reading = self._reading, []
        for handle, blocks in reading:
            ended = any(output.finish for output in handle.take())
            if not ended and not handle.dropped():
                self.give_up(handle, blocks)
