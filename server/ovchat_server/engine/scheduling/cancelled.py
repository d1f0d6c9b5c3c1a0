"""Cancelled sequences that are still inside the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.engine.scheduling.steps import Handle


class CancelledSequences:
    """Cancels sequences when that does no harm, and counts the KV blocks they hold until then.

    A prompt that is being read is read to its end first. genai names blocks when it begins to read,
    by the tokens that they are going to hold; blocks of a prompt that was cancelled before its end
    would be found under these names without ever holding them (2026.4.1; block_manager.hpp,
    allocate).
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._reading: list[tuple[Handle, int, bool]] = []
        # Blocks that the next step frees.
        self.freed = 0

    @property
    def blocks(self) -> int:
        """KV blocks that are not free yet."""
        return self.freed + sum(blocks for _, blocks, _ in self._reading)

    @property
    def need_grammar(self) -> bool:
        """Whether one is still to generate its first token, for which its grammar is looked up."""
        return any(constrained for _, _, constrained in self._reading)

    def give_up(
        self, handle: Handle | None, blocks: int, *, read: bool = False, constrained: bool = False
    ) -> None:
        """Cancel a sequence, now or when its prompt has been read.

        Args:
            handle: The sequence, or the slice of its prompt, in the pipeline; None if neither is.
            blocks: Number of KV blocks that it holds.
            read: Its prompt was read, though it generated no token.
            constrained: `handle` was added with a grammar.
        """
        if handle is not None and not (read or handle.answered):
            self._reading.append((handle, blocks, constrained))
            return
        if handle is not None:
            handle.cancel()
        self.freed += blocks

    def stepped(self) -> None:
        """Note a step of the pipeline, which has freed what was cancelled before."""
        self.freed = 0
        reading, self._reading = self._reading, []
        for handle, blocks, constrained in reading:
            ended = any(output.finish and not output.runs for output in handle.take())
            if not ended and not handle.dropped():
                self.give_up(handle, blocks, constrained=constrained)
