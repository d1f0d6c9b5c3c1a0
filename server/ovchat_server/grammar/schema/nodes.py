"""Trees of regular expressions, for patterns, formats and ranges of numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.code_points import holds, union

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat_server.grammar.schema.code_points import Ranges


class PatternError(ValueError):
    """A pattern that cannot be enforced; the message completes "uses a pattern that ..."."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    """Trees one after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several trees."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A tree repeated `fewest` to `most` times; `most` None is unbounded."""

    part: Node
    fewest: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Ahead:
    """A place of which it is known what follows, to the end of the string.

    Attributes:
        part: The tree of that.
        wanted: Whether it follows, or anything else does.
    """

    part: Node
    wanted: bool


Node = Chars | Sequence | Choice | Repeat | Ahead


def text(characters: str) -> Node:
    """Return the tree of one text."""
    return Sequence(tuple(Chars(((ord(char), ord(char)),)) for char in characters))


def choice(options: Iterable[Node]) -> Node:
    """Return a choice of trees, or the only one."""
    listed = tuple(options)
    return listed[0] if len(listed) == 1 else Choice(listed)


def looks_ahead(node: Node) -> bool:
    """Return whether a tree has places of which it is known what follows."""
    match node:
        case Sequence(parts) | Choice(parts):
            return any(map(looks_ahead, parts))
        case Repeat(part):
            return looks_ahead(part)
    return isinstance(node, Ahead)


def width(node: Node) -> tuple[int, int | None]:
    """Return the minimum and maximum length of matches, None if unbounded, in characters."""
    match node:
        case Chars():
            return 1, 1
        case Sequence(parts):
            return _sum(map(width, parts))
        case Choice(options):
            lows, highs = zip(*map(width, options), strict=True)
            return min(lows), None if None in highs else max(highs)
        case Repeat(part, fewest, most):
            low, high = width(part)
            if high == 0 or most == 0:
                return 0, 0
            return low * fewest, None if high is None or most is None else high * most
        case Ahead():
            return 0, 0


def first_characters(node: Node) -> Ranges:
    """Return the characters that what a tree matches may begin with."""
    match node:
        case Chars(ranges):
            return ranges
        case Sequence(parts):
            found: Ranges = ()
            for part in parts:
                found = union(found, first_characters(part))
                if width(part)[0]:
                    break
            return found
        case Choice(options):
            return union(*map(first_characters, options))
        case Repeat(part, _, most):
            return () if most == 0 else first_characters(part)
        case Ahead():
            return ()


def fitted(node: Node, shortest: int, longest: int | None) -> Node:
    """Return a tree of matches of `node` with `shortest` to `longest` characters, not always all.

    Raises:
        PatternError: There are none, or they cannot be determined easily.
    """
    low, high = width(node)
    if shortest <= low and (longest is None or (high is not None and high <= longest)):
        return node
    if isinstance(node, Choice):
        options = []
        for option in node.options:
            try:
                options.append(fitted(option, shortest, longest))
            except PatternError:
                continue
        if options:
            return choice(options)
    parts = node.parts if isinstance(node, Sequence) else (node,)
    if len(parts) == 1 and parts[0] is not node:
        return fitted(parts[0], shortest, longest)
    if longest is not None:
        parts = _shared(parts, longest)
    for index, part in reversed([*enumerate(parts)]):
        others = _sum(map(width, parts[:index] + parts[index + 1 :]))
        repeated = _repeated(part, others, shortest, longest)
        if repeated is not None:
            return Sequence((*parts[:index], repeated, *parts[index + 1 :]))
    raise PatternError("cannot be combined with its length limits")


def _shared(parts: tuple[Node, ...], longest: int) -> tuple[Node, ...]:
    """Bound the unbounded parts, each with the same share of the length."""
    endless = [part for part in parts if width(part)[1] is None]
    room = longest - sum(width(part)[1] or 0 for part in parts)
    shared: list[Node] = []
    for part in parts:
        most = width(part.part)[1] if isinstance(part, Repeat) and part in endless else None
        if isinstance(part, Repeat) and most and room > 0:
            shared.append(replace(part, most=max(part.fewest, room // len(endless) // most)))
        else:
            shared.append(part)
    return tuple(shared)


def _repeated(
    node: Node, others: tuple[int, int | None], shortest: int, longest: int | None
) -> Node | None:
    """Bound the repetitions of a part so that it has the length together with the others."""
    if not isinstance(node, Repeat):
        return None
    (low, high), (least, greatest) = width(node.part), others
    missing = max(shortest - least, 0)
    if missing and not low:
        return None
    fewest = max(node.fewest, -(-missing // low)) if missing else node.fewest
    most = node.most
    if longest is not None:
        if high is None or greatest is None or longest < greatest:
            return None
        room = (longest - greatest) // max(high, 1)
        most = room if most is None else min(most, room)
    return replace(node, fewest=fewest, most=most) if most is None or fewest <= most else None


def matches(node: Node, subject: str) -> bool:
    """Return whether a tree matches a whole text."""
    return len(subject) in _ends(node, subject, {0})


def _ends(node: Node, subject: str, starts: set[int]) -> set[int]:
    """Return where matches may end that start at one of `starts`."""
    match node:
        case Chars(ranges):
            return {at + 1 for at in starts if at < len(subject) and holds(ranges, subject[at])}
        case Sequence(parts):
            for part in parts:
                starts = _ends(part, subject, starts)
            return starts
        case Choice(options):
            return set().union(*(_ends(option, subject, starts) for option in options))
        case Repeat(part, fewest, most):
            for _ in range(fewest):
                before, starts = starts, _ends(part, subject, starts)
                if before == starts:
                    break
            reached, newest, left = set(starts), starts, most
            while newest and (left is None or left > fewest):
                newest = _ends(part, subject, newest) - reached
                reached |= newest
                left = None if left is None else left - 1
            return reached
        case Ahead(part, wanted):
            return {at for at in starts if (len(subject) in _ends(part, subject, {at})) == wanted}


def _sum(widths: Iterable[tuple[int, int | None]]) -> tuple[int, int | None]:
    low, high = 0, 0
    endless = False
    for least, most in widths:
        low += least
        endless = endless or most is None
        high += most or 0
    return low, None if endless else high
