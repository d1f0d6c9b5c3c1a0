"""Partial blocks: the last KV blocks of texts that the pipeline has read, while not full."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

# The name of the full blocks before it (KnownPrefixes; 0: none), and the cache ids in it.
PartialBlock: TypeAlias = tuple[int, tuple[int, ...]]


class PartialBlocks:
    """Finds the partial blocks that a prompt may continue in: only one prompt may at a time.

        a text that was read    [ full block ][ full block ][ part ]
        a prompt A              [ full block ][ full block ][ part a a ]
        a prompt B              [ full block ][ full block ][ part b b ]

    A and B begin with all of the text, so genai's prefix cache lets both continue in its last
    block. It copies a shared block when a running sequence writes into it, but not when prompts
    do: if A and B are read in the same step, one of them reads the other's tokens (2026.4.1;
    block_manager.hpp, restore_cached_blocks and append_slots).

    After that step the block has another name or is copied, and B can be read. Only if A has just
    filled the block, B has to wait until the next step is under way.
    """

    def __init__(self, capacity: int, block_size: int) -> None:
        """Remember `capacity` texts, in blocks of `block_size` tokens."""
        self._capacity = capacity
        self._block_size = block_size
        # By the name of the full blocks before them.
        self._ends: dict[int, set[tuple[int, ...]]] = {}
        # In the order in which they were noted.
        self._order: dict[PartialBlock, None] = {}

    def note(self, text: Sequence[int], names: Sequence[int]) -> None:
        """Note that a text was read.

        Args:
            text: Its cache ids (Prompt.cache_ids), as in `of`.
            names: The names of its full blocks, or of those of a longer text.
        """
        full = len(text) // self._block_size
        end = tuple(text[full * self._block_size :])
        if not end:
            return
        before = names[full - 1] if full else 0
        self._order.pop((before, end), None)
        self._order[before, end] = None
        self._ends.setdefault(before, set()).add(end)
        if len(self._order) > self._capacity:
            self._forget(next(iter(self._order)))

    def of(self, prompt: Sequence[int], names: Sequence[int]) -> set[PartialBlock]:
        """Return the partial blocks that a prompt may continue in, with `names` as in `note`."""
        found: set[PartialBlock] = set()
        for number, name in enumerate((0, *names[: len(prompt) // self._block_size])):
            if ends := self._ends.get(name):
                start = number * self._block_size
                block = tuple(prompt[start : start + self._block_size])
                found |= {(name, end) for end in ends if block[: len(end)] == end}
        return found

    def _forget(self, block: PartialBlock) -> None:
        del self._order[block]
        before, end = block
        self._ends[before].remove(end)
        if not self._ends[before]:
            del self._ends[before]
