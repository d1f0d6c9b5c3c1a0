"""Sets of characters."""

from __future__ import annotations

# Sorted, apart from each other; first and last code point of each range.
Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
EVERY: Ranges = ((0, LAST),)


def ranges(text: str) -> Ranges:
    """Return the set of the ranges in pairs of characters: "azAZ" for the letters of ASCII."""
    codes = [*map(ord, text)]
    return union(tuple(zip(codes[::2], codes[1::2], strict=True)))


def characters(text: str) -> Ranges:
    """Return the set of the characters of a text."""
    return union(tuple((ord(char), ord(char)) for char in text))


def union(*sets: Ranges) -> Ranges:
    """Return the union of sets, which need not be sorted."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(item for ranges in sets for item in ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def without(whole: Ranges, part: Ranges) -> Ranges:
    """Return the characters of `whole` that are not in `part`."""
    left: list[tuple[int, int]] = []
    for first, last in whole:
        start = first
        for low, high in part:
            if low > last or high < start:
                continue
            if low > start:
                left.append((start, low - 1))
            start = high + 1
        if start <= last:
            left.append((start, last))
    return tuple(left)


def common(one: Ranges, other: Ranges) -> Ranges:
    """Return the intersection of two sets."""
    return without(one, without(EVERY, other))


def holds(ranges: Ranges, char: str) -> bool:
    """Return whether a character is in a set."""
    return any(first <= ord(char) <= last for first, last in ranges)
