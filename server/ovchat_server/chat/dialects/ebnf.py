"""Expressions of the compiler's grammars: texts, patterns and numbers.

Grammars name what they hold, and hold it once: the compiler takes seconds for many regular
expressions with the same text in them. Alternatives that begin alike it takes for others, too:
it merges the places in them, and of `a` or `aa` makes any number of those. So each ends in a
rule of its own, which is empty: places before different rules are different (xgrammar 0.1.31).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Ranges = list[tuple[int, int]]

NOTHING = '""'
OTHER = "other"
# A text whose first letter says which it is.
_FIRST = re.compile(r'"[A-Za-z][^"\\]*"$')
LAST_ASCII, LAST = 0x7F, 0x10FFFF
HALVES = (0xD800, 0xDFFF)
# Multiples of these begin characters whose first bytes are others, or more.
BLOCKS = (0x40000, 0x10000, 0x1000, 0x800, 0x80, 0x40)
# Longer numbers are none that every reader reads.
MOST_DIGITS = 18
MINUS = '"-"? '
INTEGER = f'{MINUS}("0" | [1-9] [0-9]{{0,{MOST_DIGITS - 1}}})'
FRACTION = f'("." [0-9]{{1,{MOST_DIGITS - 1}}})? ([eE] [-+]? [0-9]{{1,2}})?'
_ESCAPES = {'"': r"\"", "\\": r"\\"}
# Between what the compiler would read as one number.
_BROKEN = re.compile("(?<=[\x80-\xff])(?=[0-9A-Fa-f])|(?<=\\\\x[01][0-9a-f])(?=[0-9A-Fa-f])")


def literal(text: str) -> str:
    """One text."""
    return f'"{_BROKEN.sub(chr(34) + " " + chr(34), "".join(map(_written, text)))}"'


def _written(char: str) -> str:
    return f"\\x{ord(char):02x}" if char < " " else _ESCAPES.get(char, char)


def any_of(options: Iterable[str]) -> str:
    """One of some expressions."""
    listed = list(dict.fromkeys(options))
    if len(listed) == 1:
        return listed[0]
    if len({_FIRST.match(option) and option[1] for option in listed} - {None}) < len(listed):
        listed = [f"{option} {OTHER}{at}" for at, option in enumerate(listed)]
    return f"({' | '.join(listed)})"


def grammar(start: str, rules: Mapping[str, str]) -> str:
    """A grammar: what it begins with, and the other rules by their names."""
    text = "\n".join(f"{name} ::= {body}" for name, body in {"root": start, **rules}.items())
    ends = dict.fromkeys(re.findall(rf"\b{OTHER}\d+\b", text))
    return "\n".join([text, *(f"{end} ::= {NOTHING}" for end in ends)])


def repeated(expression: str, fewest: int, most: int | None) -> str:
    """An expression, so many times."""
    if most == 0:
        return NOTHING
    return f"({expression}){{{fewest},{'' if most is None else most}}}"


def until(tag: str) -> str:
    """The body of a rule: any text, with the `tag` that it ends in."""
    return f"TagDispatch(stop_eos=false, stop_str=({literal(tag)}), loop_after_dispatch=false)"


def characters(wanted: Ranges, *, negated: bool = False) -> str:
    """Any character in some ranges, or not in them."""
    listed = _merged(wanted)
    # Of its own negation the compiler dies, or takes bytes that are no character.
    ranges = _others(listed) if negated else listed
    return _class([part for low, high in ranges for part in _aligned(low, high)])


def excluding(barred: str) -> str:
    """Any character but some of ASCII; or bytes that are none, which are read as one."""
    return _class(_merged([(ord(char), ord(char)) for char in barred]), "^")


def _class(ranges: Ranges, mark: str = "") -> str:
    # By their numbers alone: the compiler takes letters behind one for more of it.
    written = "".join(
        _escaped(low) + (f"-{_escaped(high)}" if high > low else "") for low, high in ranges
    )
    return f"[{mark}{written}]"


def _aligned(low: int, high: int) -> Iterator[tuple[int, int]]:
    """The same range, in parts that begin and end where bytes of UTF-8 do.

    In others the compiler takes longer forms of characters, and first bytes that nothing follows:
    behind those the answer would be free.
    """
    for size in BLOCKS:
        if low // size == high // size:
            continue
        first, last = -(-low // size) * size, (high + 1) // size * size
        if low < first:
            yield from _aligned(low, first - 1)
        if first < last:
            yield first, last - 1
        if last <= high:
            yield from _aligned(last, high)
        return
    yield low, high


def _merged(ranges: Ranges) -> Ranges:
    merged: Ranges = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def _others(ranges: Ranges) -> Ranges:
    """What lies between sorted ranges; no halves of characters."""
    barred = _merged([*ranges, HALVES])
    starts = [0, *(high + 1 for _, high in barred)]
    ends = [*(low - 1 for low, _ in barred), LAST]
    return [(low, high) for low, high in zip(starts, ends, strict=True) if low <= high]


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code <= LAST_ASCII else f"\\U{code:08x}"


def integers(low: int, high: int) -> str:
    """The integers from `low` to `high`."""
    parts = []
    if low < 0:
        parts.append(f'"-" {any_of(_positive(max(1, -high), -low))}')
    if high >= 0:
        parts += _positive(max(0, low), high)
    return any_of(parts)


def _positive(low: int, high: int) -> list[str]:
    parts = []
    for length in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (length - 1) if length > 1 else 0)
        parts.append(_as_long(str(first), str(min(high, 10**length - 1))))
    return parts


def _as_long(low: str, high: str) -> str:
    """Between two numbers of as many digits."""
    rest = len(low) - 1
    if not rest:
        return f"[{low}-{high}]"
    if low[0] == high[0]:
        return f'"{low[0]}" {_as_long(low[1:], high[1:])}'
    first, last = int(low[0]), int(high[0])
    parts = []
    if low[1:].strip("0"):
        parts.append(f'"{first}" {_as_long(low[1:], "9" * rest)}')
        first += 1
    if high[1:].strip("9"):
        parts.append(f'"{last}" {_as_long("0" * rest, high[1:])}')
        last -= 1
    if first <= last:
        parts.append(f"[{first}-{last}] [0-9]{{{rest}}}")
    return any_of(parts)
