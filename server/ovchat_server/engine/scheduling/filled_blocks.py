"""Blocks that two sequences have filled with the same tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.engine.scheduling.cached_prefixes import KnownPrefixes
    from ovchat_server.engine.scheduling.sequence import ScheduledSequence


class FilledBlocks:
    """Tells sequences that may be added anew from where on others have the same blocks.

    The pipeline knows both by one name, which is gone when the older one is overwritten (2026.4.1;
    block_manager.hpp, allocate_block). A sequence that is added anew would then read all from there
    on, with a row of logits for each token.
    """

    def __init__(self, known: KnownPrefixes) -> None:
        """Begin with those known."""
        self._known = known

    def note(self, sequence: ScheduledSequence) -> None:
        """Note what a running sequence has filled since the last call."""
        handle, size = sequence.handle, self._known.block_size
        if not handle or handle.shared is not None or sequence.request.generation.beams > 1:
            return
        # The last token is read with the next one.
        before, sequence.filled = sequence.filled, (sequence.length - 1) // size
        if before is None:
            found = sequence.found
            ends = [size] if found is None else [end for end in sequence.read_before if end > found]
        elif before < sequence.filled:
            names = self._known.names(sequence.texts()[0][: sequence.filled * size])
            ends = [end for end in self._known.read_before(names) if end > before * size]
            self._known.note(names[before:])
        else:
            return
        if ends:
            handle.own_from(ends[0] - size)
