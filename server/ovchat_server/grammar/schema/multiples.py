"""Multiples of a number as trees of their digits: exactly those, as the decimals are written."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.schema.nodes import Node, Repeat, Sequence, choice, text
from ovchat_server.grammar.schema.number_ranges import decimals, integers, signed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

MAX_LISTED = 1000
# Last digits of the multiples of a step, and how many digits those are.
MAX_ENDINGS = 250
MAX_DIGITS = 12
MAX_PLACES = 400


def multiples(low: int, high: int, step: Fraction) -> Node:
    """Return the tree of the multiples of a step from `low` times it to `high` times it.

    Raises:
        SchemaError: They are too many to list, and do not repeat their last digits.
    """
    places = next(size for size in range(MAX_PLACES) if 10**size % step.denominator == 0)
    # In units of the last decimal.
    unit = int(step * 10**places)
    if places and unit == 1:
        return decimals(low, high, places)
    return signed(low * unit, high * unit, partial(_unsigned, step=unit, places=places))


def _unsigned(low: int, high: int, step: int, places: int) -> Node:
    if high - low < MAX_LISTED * step:
        return _listed(low, high, step, places)
    size = next(
        (size for size in range(max(1, places), MAX_DIGITS) if 10**size % step == 0), MAX_DIGITS
    )
    block = 10**size
    if block // step > MAX_ENDINGS:
        raise SchemaError(f"uses a multipleOf with more than {MAX_LISTED} multiples")
    first, last = low // block, high // block
    options = [_listed(low, first * block + block - 1, step, places)]
    if last - first > 1:
        endings = (f"{ending:0{size}}" for ending in range(0, block, step))
        options.append(Sequence((integers(first + 1, last - 1), _digits(endings, places))))
    options.append(_listed(last * block, high, step, places))
    return choice(options)


def _listed(low: int, high: int, step: int, places: int) -> Node:
    numbers = range(-(-low // step) * step, high + 1, step)
    return _digits((f"{number:0{places + 1}}" for number in numbers), places)


def _digits(numbers: Iterable[str], places: int) -> Node:
    """Return the tree of digits, the last of them decimals, with or without zeros at the end."""
    texts: list[str] = []
    for digits in numbers:
        whole = digits[: len(digits) - places]
        behind = digits[len(whole) :]
        texts += (
            f"{whole}{'.' if size else ''}{behind[:size]}"
            for size in range(len(behind.rstrip("0")), places + 1)
        )
    return _words(texts)


def _words(texts: Iterable[str]) -> Node:
    """Return the tree of some texts, by their first characters."""
    behind: defaultdict[str, list[str]] = defaultdict(list)
    for written in texts:
        behind[written[:1]].append(written[1:])
    ends = behind.pop("", None)
    if not behind:
        return Sequence(())
    tree = choice(Sequence((text(first), _words(rest))) for first, rest in behind.items())
    return Repeat(tree, 0, 1) if ends else tree
