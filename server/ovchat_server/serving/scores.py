"""What a reranker's numbers mean: its score of a pair."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Activation(Protocol):
    """Makes a score of what a model returns for a pair."""

    def __call__(self, numbers: Sequence[float], /) -> float:
        """Return the score."""
        ...


def identity(numbers: Sequence[float], /) -> float:
    """Return a model's only number."""
    return numbers[0]


def sigmoid(numbers: Sequence[float], /) -> float:
    """Return a model's only number between 0 and 1."""
    # Written so that no number overflows.
    return 0.5 * (1 + math.tanh(numbers[0] / 2))


def probability_of_yes(numbers: Sequence[float], /) -> float:
    """Return how likely "yes" is, given the logits of "no" and "yes"."""
    no, yes = numbers
    return sigmoid((yes - no,))
