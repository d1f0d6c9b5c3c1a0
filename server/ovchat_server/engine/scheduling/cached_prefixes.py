"""The prefixes that the pipeline's prefix cache has, as far as can be known from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


# How many times as many blocks are remembered as are there at once.
REMEMBERED = 8


class KnownPrefixes:
    """The most recently used KV blocks of the cache, each named by all cache ids up to its end.

    genai does not report what it has. It keeps full blocks until it needs their room, and evicts
    the block that was used the longest ago. An error here costs time and nothing else: a block
    that is not there is computed again.
    """

    def __init__(self, capacity: int, block_size: int) -> None:
        """Remember `capacity` blocks of `block_size` tokens."""
        self.block_size = block_size
        self.capacity = capacity
        # The one used last is at the end.
        self._blocks: dict[int, None] = {}
        # Those that may still be there without others before them.
        self._read: dict[int, None] = {}

    def names(self, cache_ids: Sequence[int], before: int = 0) -> list[int]:
        """Return the names of the full blocks of a text, or of what follows a block.

        Args:
            cache_ids: Of the text (Prompt.cache_ids).
            before: The name of the block before it; 0 if there is none.
        """
        names: list[int] = []
        name = before
        for end in range(self.block_size, len(cache_ids) + 1, self.block_size):
            name = hash((name, *cache_ids[end - self.block_size : end]))
            names.append(name)
        return names

    def length(self, names: Sequence[int]) -> int:
        """Return how many tokens the known blocks at the start of a text have; mark them used."""
        count = next((at for at, name in enumerate(names) if name not in self._blocks), len(names))
        self.note(names[:count])
        return count * self.block_size

    def read_before(self, names: Sequence[int]) -> list[int]:
        """Return where those blocks of a text end that were computed before, still there or not."""
        places = enumerate(names, start=1)
        return [place * self.block_size for place, name in places if name in self._read]

    def note(self, names: Sequence[int]) -> None:
        """Note that blocks were computed, or used again."""
        # The end of a text is evicted first: without the beginning it is of no use.
        for name in reversed(names):
            for blocks in (self._blocks, self._read):
                blocks.pop(name, None)
                blocks[name] = None
        for blocks, most in ((self._blocks, 1), (self._read, REMEMBERED)):
            while len(blocks) > most * self.capacity:
                del blocks[next(iter(blocks))]
