"""Numbers within bounds, and multiples, as trees of their digits.

Bounds hold for whoever reads a number as a float, too: what is written is never nearer to a
bound than floats can tell apart.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.nodes import Node, Sequence, choice, text
from ovchat_server.grammar.schema.number_ranges import decimals, integers
from ovchat_server.grammar.schema.shapes import Number, SchemaError, is_multiple

if TYPE_CHECKING:
    from collections.abc import Iterator

# Digits before the point, and behind it: no answer needs more.
DIGITS = 15
PLACES = 6
# Bounds that are nearer to each other have more.
MAX_PLACES = 20
MAX_MULTIPLES = 1000
# Last digits of the multiples of a step.
MAX_ENDINGS = 100


def number_node(shape: Number) -> Node:
    """Return the tree of the texts of a shape's numbers.

    Raises:
        SchemaError: There are none, or too many multiples to list.
    """
    if shape.step is not None:
        return _multiples(shape, shape.step)
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


def _multiples(shape: Number, step: Fraction) -> Node:
    if shape.whole:
        step = Fraction(math.lcm(step.numerator, step.denominator) // step.denominator)
    low, high = _limits(shape, step)
    if high - low < MAX_MULTIPLES:
        found = [
            text(written)
            for count in range(low, high + 1)
            if is_multiple(float(written := _decimal(count * step)), step)
        ]
        if not found:
            raise SchemaError("uses a multipleOf of which there is none between the bounds")
        return choice(found)
    size = next((size for size in range(1, DIGITS) if 10**size % step == 0), DIGITS)
    if step.denominator > 1 or 10**size // step > MAX_ENDINGS:
        raise SchemaError(f"uses a multipleOf of which there are more than {MAX_MULTIPLES}")
    signs = (("-", max(1, -high), -low), ("", max(0, low), high))
    return choice(
        Sequence((text(sign), option))
        for sign, least, greatest in signs
        if least <= greatest
        for option in _by_endings(least * int(step), greatest * int(step), int(step), 10**size)
    )


def _by_endings(low: int, high: int, step: int, block: int) -> Iterator[Node]:
    """Yield trees of the multiples of `step` from `low` to `high`, by their last digits."""
    first, last = low // block, high // block
    for number in sorted({first, last}):
        least = low % block if number == first else 0
        greatest = high % block if number == last else block - 1
        yield choice(
            text(str(number * block + ending))
            for ending in range(-(-least // step) * step, greatest + 1, step)
        )
    if last - first > 1:
        endings = [text(str(block + ending)[1:]) for ending in range(0, block, step)]
        yield Sequence((integers(first + 1, last - 1), choice(endings)))


def _decimal(number: Fraction) -> str:
    """Write a decimal fraction without an exponent."""
    if number.denominator == 1:
        return str(number.numerator)
    places = next(size for size in range(1, 400) if 10**size % number.denominator == 0)
    digits = f"{abs(number.numerator) * 10**places // number.denominator:0{places + 1}}"
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"
