"""Prompts that the prefix cache does not know, though it may have read the same tokens before.

genai names KV blocks by the 64 bits of their tokens, of which OpenVINO's CPU plugin reads 32 and
the model so many. So a first token with a salt in the upper half is the same to the model, and
nothing that was read behind another one is found (openvino.genai 2026.4.1; a step that did read
something else is found out by engine.genai.row_owners).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

BITS: Final = 32
TOKEN: Final = (1 << BITS) - 1
# The sign is a bit, too. It is long before one comes again.
SALTS: Final = 1 << (BITS - 1)


class Salts:
    """Gives each prompt a salt of its own."""

    def __init__(self) -> None:
        """None was given."""
        self._given = 0

    def salted(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """The prompt, as nobody has read it before."""
        self._given = self._given % (SALTS - 1) + 1
        first, *others = prompt
        return ((self._given << BITS) + first, *others)


def unsalted(tokens: Sequence[int]) -> Sequence[int]:
    """The tokens, of the model's vocabulary again."""
    if tokens[0] <= TOKEN:
        return tokens
    return (tokens[0] & TOKEN, *tokens[1:])
