"""Texts that the pipeline has read up to the middle of a KV block."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

# The name of the full blocks before it (KnownPrefixes; 0: none), and the tokens in it.
OpenBlock: TypeAlias = tuple[int, tuple[int, ...]]


class OpenBlocks:
    """Says in which blocks of others a prompt may go on: of several one after the other.

    A prompt that begins with all of such a text goes on in its last block. genai copies a block
    that several use when a running sequence writes into it, but not when prompts do: of several
    that begin there in the same step all but one read what is another's, and answer with it in
    mind (2026.4.1; block_manager.hpp, restore_cached_blocks and append_slots). In the next step
    the block has another name, or is copied; but one that the prompt has just filled is neither
    before that step is under way.
    """

    def __init__(self, capacity: int, block_size: int) -> None:
        """Remember `capacity` texts; blocks hold `block_size` tokens."""
        self._capacity = capacity
        self._block_size = block_size
        # By the blocks before them.
        self._ends: dict[int, set[tuple[int, ...]]] = {}
        # The one noted last is at the end.
        self._order: dict[OpenBlock, None] = {}

    def note(self, text: Sequence[int], names: Sequence[int]) -> None:
        """A text was read; `names` are of its full blocks, or of those of a longer one."""
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

    def of(self, prompt: Sequence[int], names: Sequence[int]) -> set[OpenBlock]:
        """Those that a prompt may go on in; `names` as in `note`."""
        found: set[OpenBlock] = set()
        for number, name in enumerate((0, *names[: len(prompt) // self._block_size])):
            if ends := self._ends.get(name):
                start = number * self._block_size
                block = tuple(prompt[start : start + self._block_size])
                found |= {(name, end) for end in ends if block[: len(end)] == end}
        return found

    def _forget(self, block: OpenBlock) -> None:
        del self._order[block]
        before, end = block
        self._ends[before].remove(end)
        if not self._ends[before]:
            del self._ends[before]
