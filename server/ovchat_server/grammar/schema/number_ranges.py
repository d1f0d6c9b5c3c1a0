"""Ranges of numbers as trees of the digits of the numbers between two others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.code_points import ranges
from ovchat_server.grammar.schema.nodes import Chars, Node, Repeat, Sequence, choice, text

if TYPE_CHECKING:
    from collections.abc import Callable

DIGIT = Chars(ranges("09"))


def integers(low: int, high: int) -> Node:
    """Return the tree of the integers from `low` to `high`, `low` <= `high`."""
    return signed(low, high, _naturals)


def decimals(low: int, high: int, places: int) -> Node:
    """Return the tree of the numbers with at most `places` decimals, `low` <= `high`.

    Args:
        low: The least number, times 10 to the power of `places`.
        high: The greatest number, likewise.
        places: The number of decimals, at least 1.
    """
    return signed(low, high, partial(_positive, places=places))


def signed(low: int, high: int, unsigned: Callable[[int, int], Node]) -> Node:
    """Return the tree of numbers, given the trees of those that are not negative."""
    options: list[Node] = []
    if low < 0:
        # Without -0, which is 0.
        smallest = max(1, -high)
        options.append(Sequence((text("-"), unsigned(smallest, -low))))
    if high >= 0:
        options.append(unsigned(max(low, 0), high))
    return choice(options)


def _positive(low: int, high: int, places: int) -> Node:
    unit = 10**places
    least, greatest = low // unit, high // unit
    zeros, nines = "0" * places, "9" * places
    start, end = f"{low % unit:0{places}}", f"{high % unit:0{places}}"
    if least == greatest:
        return Sequence((_naturals(least, least), _fraction(start, end)))
    options: list[Node] = []
    if start != zeros:
        options.append(Sequence((_naturals(least, least), _fraction(start, nines))))
        least += 1
    last = greatest
    if end != nines:
        options.append(Sequence((_naturals(greatest, greatest), _fraction(zeros, end))))
        last -= 1
    if least <= last:
        options.append(Sequence((_naturals(least, last), _fraction(zeros, nines))))
    return choice(options)


def _fraction(start: str, end: str) -> Node:
    """Return the tree of the point and the decimals, or nothing for 0."""
    digits = Sequence((text("."), _decimals(start, end)))
    return Repeat(digits, 0, 1) if not int(start) else digits


def _decimals(start: str, end: str) -> Node:
    """Return the tree of decimals, at least one, that padded with zeros lie within the range."""
    if start.strip("0") == "" and end.strip("9") == "":
        return Repeat(DIGIT, 1, len(start))
    return _by_first_digit(start, end, _more_decimals, Repeat(DIGIT, 0, len(start) - 1))


def _more_decimals(start: str, end: str) -> Node:
    """Return the tree of further decimals, or of none if that lies within the range."""
    if not start:
        return Sequence(())
    digits = _decimals(start, end)
    return Repeat(digits, 0, 1) if not int(start) else digits


def _naturals(low: int, high: int) -> Node:
    options: list[Node] = []
    for size in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (size - 1) if size > 1 else 0)
        options.append(_same_size(str(first), str(min(high, 10**size - 1))))
    return choice(options)


def _same_size(start: str, end: str) -> Node:
    """Return the tree of the numbers from `start` to `end`, which have as many digits."""
    if not start:
        return Sequence(())
    rest = len(start) - 1
    return _by_first_digit(start, end, _same_size, Repeat(DIGIT, rest, rest))


def _by_first_digit(
    start: str, end: str, others: Callable[[str, str], Node], anything: Node
) -> Node:
    """Return the tree of the digits from `start` to `end`, which are as many.

    Args:
        start: The least of them.
        end: The greatest.
        others: Makes the tree of the digits behind the first, between two bounds.
        anything: The same where there is no bound.
    """
    rest = len(start) - 1
    first, last = int(start[0]), int(end[0])
    if first == last:
        return Sequence((text(start[0]), others(start[1:], end[1:])))
    options: list[Node] = []
    if start[1:].strip("0"):
        options.append(Sequence((text(start[0]), others(start[1:], "9" * rest))))
        first += 1
    if end[1:].strip("9"):
        options.append(Sequence((text(end[0]), others("0" * rest, end[1:]))))
        last -= 1
    if first <= last:
        digits = Chars(((ord("0") + first, ord("0") + last),))
        options.append(Sequence((digits, anything)))
    return choice(options)
