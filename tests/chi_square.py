"""Whether two samples may be of the same distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter

# Standard deviations that chance exceeds once in three hundred thousand times.
UNLIKELY = 4.5
# Where less is expected, the statistic does not follow its distribution.
OFTEN = 10


def surprise(one: Counter[str], other: Counter[str]) -> float:
    """How many standard deviations two samples of the same size are apart (chi-square).

    Wilson and Hilferty: the cube root of a chi-square is nearly normal.
    """
    often = [item for item, times in (one + other).items() if times >= OFTEN]
    pairs = [(one[item], other[item]) for item in often]
    rest = one.total() - sum(a for a, _ in pairs), other.total() - sum(b for _, b in pairs)
    pairs += [rest] if sum(rest) >= OFTEN else []
    assert len(pairs) > 2
    square = sum((a - b) ** 2 / (a + b) for a, b in pairs)
    spread = 2 / (9 * (len(pairs) - 1))
    return float((square / (len(pairs) - 1)) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
