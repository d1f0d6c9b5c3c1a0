"""What proposes the tokens that may come next in a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Proposer(Protocol):
    """Proposes the tokens that may follow a text, and learns how often they come."""

    def append(self, token: int) -> None:
        """Append a token that came, and note whether it was expected."""
        ...

    def chances(self, count: int) -> Sequence[float]:
        """Return how likely each of up to `count` tokens is to come, with all before it."""
        ...

    def proposal(self, count: int) -> Sequence[int]:
        """Return up to `count` tokens that may come next, none of which ends the answer."""
        ...
