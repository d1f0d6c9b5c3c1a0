"""How long a step takes that reads more tokens than one of each sequence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# The weight of a step against those before it.
WEIGHT = 0.1
# How many times as long as others a step is taken to be, before any was measured: with one token
# more, and with many.
FEW, MANY = 1.5, 16
# The share of what is known that is left after a further step.
LASTING = 0.95
# A step that takes longer still was held up by something else.
USUAL = 2
# How much of what was measured a step takes back that only shows what a plain one takes: nothing is
# measured where nothing is proposed, and what was slow once would stay so.
FADING = 0.002


class StepCost:
    """Measures steps of about so many sequences, in times of one that reads a token of each.

    The line through what was measured says what others cost. Where each step reads another number
    of tokens OpenVINO prepares anew, also the step that reads one of each again (2026.4.1). So what
    that takes longer counts for the step before.
    """

    def __init__(self, running: int, measured: Sequence[tuple[int, float]] = ()) -> None:
        """Begin with what was measured, or a guess. What is not measured again fades into it.

        Args:
            running: About how many sequences run: a token more costs less beside many.
            measured: Numbers of further tokens, and the times that such steps took.
        """
        # Seconds of a plain step, by the number of sequences.
        self._plain: dict[int, float] = {}
        self._last = 0
        # Of the points: their number, and the sums of tokens, times, and their products.
        self._sums = [0.0] * 5
        for tokens in (1, MANY):
            self._add(tokens, FEW + 0.2 * (tokens - 1) / (running + 1))
        self._guess = self._sums
        if measured:
            self._sums = [0.0] * 5
            for tokens, times in measured:
                self._add(tokens, times)

    def of(self, further: float) -> float:
        """Return how many times as long as a plain one a step takes with further tokens."""
        if not further:
            return 1
        count, tokens, times, squares, products = self._sums
        spread = count * squares - tokens * tokens
        slope = max((count * products - tokens * times) / spread, 0) if spread > 0 else 0
        return max((times + slope * (further * count - tokens)) / count, 1)

    def times(self, running: int, seconds: float) -> float:
        """Return a time in times of a plain step, which may not have been measured: infinite."""
        plain = self._plain.get(running)
        return seconds / plain if plain else math.inf if seconds else 0

    def note(self, running: int, further: int, seconds: float) -> None:
        """Learn from a step."""
        last, self._last = self._last, further
        plain = self._plain.get(running)
        if not (further or last):
            before = seconds if plain is None else plain
            self._plain[running] = before + WEIGHT * (seconds - before)
            pairs = zip(self._sums, self._guess, strict=True)
            self._sums = [old + FADING * (guess - old) for old, guess in pairs]
        elif plain and further:
            self._add(further, min(seconds / plain, USUAL * self.of(further)))
        elif plain:
            more = min(max(seconds / plain - 1, 0), USUAL)
            self._sums[2] += more
            self._sums[4] += more * last

    def _add(self, further: int, times: float) -> None:
        point = 1, further, times, further * further, further * times
        self._sums = [LASTING * old + new for old, new in zip(self._sums, point, strict=True)]
