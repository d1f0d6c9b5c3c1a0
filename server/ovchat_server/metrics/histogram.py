"""Histograms that take many equal observations at once."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Histogram:
    """Counts observations by size.

    prometheus-client's own takes one at a time, and each engine step brings the same gap between
    tokens for all running requests.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        """Begin with no observations; `bounds` are the buckets' upper bounds, ascending."""
        self._bounds = (*bounds, math.inf)
        self._counts = [0] * len(self._bounds)
        self.sum = 0.0

    def observe(self, value: float | None, count: int = 1) -> None:
        """Note that a value was seen `count` times; None: it is not known, and not counted."""
        if value is not None:
            self._counts[bisect_left(self._bounds, value)] += count
            self.sum += value * count

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """The upper bounds, as Prometheus writes them, and how many are at most that large."""
        names = ["+Inf" if bound == math.inf else str(float(bound)) for bound in self._bounds]
        return [*zip(names, accumulate(self._counts), strict=True)]
