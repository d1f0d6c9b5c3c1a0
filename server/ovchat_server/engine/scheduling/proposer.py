"""What proposes the tokens that may come next in a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest


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


class Proposers(Protocol):
    """Makes the proposers of a pipeline's sequences."""

    def proposer(self, request: GenerationRequest, stops: Collection[int]) -> Proposer:
        """Return what proposes tokens of an answer.

        Args:
            request: The request.
            stops: Tokens that are not proposed, nor what follows them.
        """
        ...

    def seconds(self, sequences: int, count: int) -> float:
        """Return how long it takes to find up to `count` tokens for each of some sequences."""
        ...

    def find(self, chosen: Iterable[tuple[Proposer, int]]) -> None:
        """Find the tokens that these are to propose, up to so many each."""
        ...
