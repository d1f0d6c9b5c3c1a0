"""Sequences that were given up and are still inside the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.engine.scheduling.steps import Handle


class Leaving:
    """Cancels them when that does no harm, and counts the blocks that they have until then.

    A prompt that is being read is read to its end first. genai names blocks by the tokens that
    they are to have, when it begins to read; cancelled before that, they would be found under
    these names, and never have them (2026.4.1; block_manager.hpp, allocate).
    """

    def __init__(self) -> None:
        """Nobody leaves."""
        self._reading: list[tuple[Handle, int]] = []
        # Their blocks, which the next step frees.
        self.cancelled = 0

    @property
    def blocks(self) -> int:
        """Those that are not free yet."""
        return self.cancelled + sum(blocks for _, blocks in self._reading)

    def give_up(self, handle: Handle | None, blocks: int, *, read: bool = False) -> None:
        """A sequence is not wanted any more.

        Args:
            handle: What runs of it; None: nothing.
            blocks: How many it has.
            read: Its prompt was read, though nothing came of it.
        """
        if handle is not None and not (read or handle.answered):
            self._reading.append((handle, blocks))
            return
        if handle is not None:
            handle.cancel()
        self.cancelled += blocks

    def stepped(self) -> None:
        """The pipeline made a step: what was cancelled before is free."""
        self.cancelled = 0
        reading, self._reading = self._reading, []
        for handle, blocks in reading:
            ended = any(output.finish for output in handle.take())
            if not ended and not handle.dropped():
                self.give_up(handle, blocks)
