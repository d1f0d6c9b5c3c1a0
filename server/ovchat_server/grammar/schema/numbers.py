"""Numbers within bounds as trees of their digits.

Bounds hold for whoever reads a number as a float, too: what is written is never nearer to a
bound than floats can tell apart.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.schema.multiples import multiples
from ovchat_server.grammar.schema.number_ranges import decimals, integers

if TYPE_CHECKING:
    from ovchat_server.grammar.schema.nodes import Node
    from ovchat_server.grammar.schema.shapes import Number

# Digits before the point, and behind it: no answer needs more.
DIGITS = 15
PLACES = 6
# Bounds that are nearer to each other have more.
MAX_PLACES = 20


def number_node(shape: Number) -> Node:
    """Return the tree of the texts of a shape's numbers.

    Raises:
        SchemaError: There are none, or too many multiples to list.
    """
    if shape.step is not None:
        step = shape.step
        if shape.whole:
            step = Fraction(math.lcm(step.numerator, step.denominator) // step.denominator)
        return multiples(*_limits(shape, step), step)
    places = 0 if shape.whole else _places(shape)
    low, high = _limits(shape, Fraction(1, 10**places))
    return decimals(low, high, places) if places else integers(low, high)


def _places(shape: Number) -> int:
    """Return the number of decimals that is enough to come close to both bounds."""
    needed = [
        next((size for size in range(MAX_PLACES) if 10**size % bound.denominator == 0), MAX_PLACES)
        for bound in (shape.low, shape.high)
        if bound is not None
    ]
    return min(max([PLACES, *(size + 2 for size in needed if size > PLACES - 2)]), MAX_PLACES)


def _limits(shape: Number, unit: Fraction) -> tuple[int, int]:
    """Return the least and the greatest number of a shape, in units."""
    largest = math.floor((10**DIGITS - 1) / unit)
    low = -largest if shape.low is None else _above(shape.low, unit, strictly=shape.above)
    high = largest if shape.high is None else -_above(-shape.high, unit, strictly=shape.below)
    low, high = max(low, -largest), min(high, largest)
    if low > high:
        raise SchemaError("has bounds with no number of a common length between them")
    return low, high


def _above(bound: Fraction, unit: Fraction, *, strictly: bool) -> int:
    """Return the least number of units that is at least the bound, or `strictly` above it."""
    first = math.ceil(bound / unit)
    size = 1
    while strictly and float(first * unit) <= float(bound):
        first += size
        size *= 2
    return first
