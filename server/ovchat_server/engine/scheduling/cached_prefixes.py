"""Which beginnings of prompts the pipeline's prefix cache holds, as far as can be told outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class KnownPrefixes:
    """The KV blocks used last, each named by all tokens up to its end.

    genai does not tell what it has. It keeps full blocks until it needs their room, and takes
    that of the block that was used the longest ago. An error here costs time and nothing else:
    what was thought to be there is read again.
    """

    def __init__(self, capacity: int, block_size: int) -> None:
        """Remember `capacity` blocks of `block_size` tokens."""
        self.block_size = block_size
        self.capacity = capacity
        # The one used last is at the end.
        self._blocks: dict[int, None] = {}

    def names(self, tokens: Sequence[int]) -> list[int]:
        """The names of the full blocks of a text."""
        names: list[int] = []
        name = 0
        for end in range(self.block_size, len(tokens) + 1, self.block_size):
            name = hash((name, *tokens[end - self.block_size : end]))
            names.append(name)
        return names

    def length(self, names: Sequence[int]) -> int:
        """Tokens of a text's blocks, from the first on, that are known. They count as used."""
        count = next((at for at, name in enumerate(names) if name not in self._blocks), len(names))
        self.note(names[:count])
        return count * self.block_size

    def note(self, names: Sequence[int]) -> None:
        """Blocks were read, or used again."""
        # The end of a text is the first that goes: without its beginning it is of no use.
        for name in reversed(names):
            self._blocks.pop(name, None)
            self._blocks[name] = None
        while len(self._blocks) > self.capacity:
            del self._blocks[next(iter(self._blocks))]
