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
        if before == sequence.filled:
            return
        start = (before or 0) * size
        text = sequence.texts()[0][start : sequence.filled * size]
        names = self._known.names(text, sequence.last_block)
        if before is not None:
            ends = [start + end for end in self._known.read_before(names)]
            self._known.note(names)
        elif sequence.found is None:
            ends = [size]
        else:
            ends = [end for end in sequence.read_before if end > sequence.found]
        sequence.last_block = names[-1] if names else 0
        if ends:
            handle.own_from(ends[0] - size)
