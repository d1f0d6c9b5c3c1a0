"""Prompts that the prefix cache does not find, though it may hold the same tokens.

genai names KV blocks by all 64 bits of their tokens, of which OpenVINO's CPU plugin, and so the
model, reads the lower 32. So a first token with a salt in its upper half is the same to the model,
and no block that was computed behind another one is found (openvino.genai 2026.4.1; should a step
read something else after all, engine.genai.row_owners notices).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

BITS: Final = 32
TOKEN: Final = (1 << BITS) - 1
# The sign takes a bit, too. It is long before one comes again.
SALT_COUNT: Final = 1 << (BITS - 1)


class CacheSalt:
    """Gives each prompt a cache salt of its own."""

    def __init__(self) -> None:
        """Begin with the first salt."""
        self._given = 0

    def salted(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """Return the prompt with a salt in its first token."""
        self._given = self._given % (SALT_COUNT - 1) + 1
        first, *others = prompt
        return ((self._given << BITS) + first, *others)


def unsalted(tokens: Sequence[int]) -> Sequence[int]:
    """Return a prompt without its salt, if it has one: tokens of the model's vocabulary."""
    if tokens[0] <= TOKEN:
        return tokens
    return (tokens[0] & TOKEN, *tokens[1:])
