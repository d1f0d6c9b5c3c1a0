"""How long a draft model takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# The weight of a round against those before it.
WEIGHT = 0.1
# A step that takes longer still was held up by something else.
USUAL = 2


class DraftCost:
    """Measures rounds for about so many sequences: the step that reads what is new, and others."""

    def __init__(self) -> None:
        """Begin with nothing measured."""
        # Seconds of the first step and of each further one: for 1 sequence, 2 to 3, 4 to 7, ...
        self._steps: dict[int, tuple[float, float]] = {}

    def seconds(self, sequences: int, count: int) -> float:
        """Return how long it takes to draft `count` tokens for each of so many sequences.

        What was not measured is taken to be as what comes next to it; 0 before anything was.
        """
        size = sequences.bit_length()
        near = min(self._steps, key=lambda known: abs(known - size), default=size)
        first, further = self._steps.get(near, (0.0, 0.0))
        return first + further * (count - 1)

    def note(self, sequences: int, steps: Sequence[float]) -> None:
        """Learn from the seconds of a round's steps, at least one."""
        size = sequences.bit_length()
        first, *others = steps
        further = sum(others) / len(others) if others else None
        before = self._steps.get(size)
        if before is None:
            self._steps[size] = first, first if further is None else further
            return
        self._steps[size] = (
            _mean(before[0], first),
            before[1] if further is None else _mean(before[1], further),
        )


def _mean(before: float, seconds: float) -> float:
    return before + WEIGHT * (min(seconds, USUAL * before) - before)
