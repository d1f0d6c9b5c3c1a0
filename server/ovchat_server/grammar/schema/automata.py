"""What several trees have in common, found by the states that strings lead to."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from ovchat_server.grammar.schema.code_points import LAST, Ranges, holds, union
from ovchat_server.grammar.schema.languages import TOO_LARGE, Languages
from ovchat_server.grammar.schema.nodes import (
    Chars,
    Choice,
    Node,
    PatternError,
    Repeat,
    Sequence,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ovchat_server.grammar.schema.languages import Language

# To compare languages, and to write one out.
MAX_COMPARED = 2_000
MAX_STATES = 300
# Of a tree, in characters.
MAX_SIZE = 3_000
# In all sets of characters.
MAX_RANGES = 1_000
# How to get from one state to others.
Moves = dict["Language", Ranges]


def inside(node: Node, others: list[Node]) -> bool:
    """Return whether all strings of a tree are strings of other trees, too.

    Raises:
        PatternError: That takes too long to find out.
    """
    languages = Languages()
    one = languages.of(node)
    wanted = languages.intersection(map(languages.of, others))
    # One after the other, which are fewer states than together.
    parts: Iterable[Language] = wanted.parts[0] if wanted.kind == "intersection" else [wanted]
    return not any(
        state.empty
        for part in parts
        for state, _ in _moves(
            languages, languages.intersection([one, languages.complement(part)]), MAX_COMPARED
        )
    )


def in_common(nodes: list[Node]) -> Node | None:
    """Return a tree of the strings that all trees have in common; None if there are none.

    Raises:
        PatternError: It is too large.
    """
    languages = Languages()
    start = languages.intersection(map(languages.of, nodes))
    return _tree(dict(_moves(languages, start, MAX_STATES)), start)


def _moves(languages: Languages, start: Language, most: int) -> Iterator[tuple[Language, Moves]]:
    """Yield the states that strings lead to, with where characters lead from there."""
    if sum(map(len, languages.sets)) > MAX_RANGES:
        raise PatternError(TOO_LARGE)
    classes = [*_classes(languages.sets)]
    known, waiting = {start}, [start]
    while waiting:
        state = waiting.pop()
        moves: Moves = {}
        for ranges in classes:
            found = languages.after(state, chr(ranges[0][0]))
            if found is not languages.none:
                moves[found] = union(moves.get(found, ()), ranges)
        yield state, moves
        waiting += moves.keys() - known
        known |= moves.keys()
        if len(known) > most:
            raise PatternError(TOO_LARGE)


def _classes(sets: set[Ranges]) -> Iterator[Ranges]:
    """Yield sets of the characters that no other set tells apart."""
    starts = sorted({0, *(code for item in sets for low, high in item for code in (low, high + 1))})
    ends = [*(start - 1 for start in starts[1:]), LAST]
    alike: dict[tuple[bool, ...], Ranges] = {}
    for low, high in zip(starts, ends, strict=True):
        if low <= high:
            key = tuple(holds(ranges, chr(low)) for ranges in sets)
            alike[key] = (*alike.get(key, ()), (low, high))
    yield from alike.values()


class _Way(NamedTuple):
    """How to get from one state to another."""

    node: Node
    # In characters.
    size: int


NOTHING = _Way(Sequence(()), 0)


class _Ways:
    """The ways between states, from which one state after the other is left out."""

    def __init__(self) -> None:
        self._to: defaultdict[object, dict[object, _Way]] = defaultdict(dict)
        self._from: defaultdict[object, set[object]] = defaultdict(set)

    def add(self, source: object, target: object, way: _Way) -> None:
        known = self._to[source].get(target)
        if known:
            way = _Way(_either(known.node, way.node), known.size + way.size)
        if way.size > MAX_SIZE:
            raise PatternError(TOO_LARGE)
        self._to[source][target] = way
        self._from[target].add(source)

    def cost(self, state: object) -> int:
        """Return by how much the ways get longer where a state is left out."""
        to, into = self._to[state], self._from[state] - {state}
        loop = to[state].size if state in to else 0
        after = [way.size for target, way in to.items() if target is not state]
        before = [self._to[source][state].size for source in into]
        return (
            sum(before) * (len(after) - 1)
            + sum(after) * (len(before) - 1)
            + loop * (len(before) * len(after) - 1)
        )

    def leave_out(self, state: object) -> None:
        to, into = self._to.pop(state), self._from.pop(state) - {state}
        node, size = to.pop(state, NOTHING)
        loop = Repeat(node, 0, None) if size else node
        for target in to:
            self._from[target].discard(state)
        for source in into:
            first, before = self._to[source].pop(state)
            for target, (last, after) in to.items():
                self.add(source, target, _Way(_joined(first, loop, last), before + size + after))

    def way(self, source: object, target: object) -> Node:
        return self._to[source][target].node


def _tree(moves: dict[Language, Moves], start: Language) -> Node | None:
    """Return the tree of what leads from a state to one that strings may end in."""
    left = _ending(moves)
    if start not in left:
        return None
    ways = _Ways()
    ways.add("start", start, NOTHING)
    for state in left:
        for target, ranges in moves[state].items():
            if target in left:
                ways.add(state, target, _Way(Chars(ranges), 1))
        if state.empty:
            ways.add(state, "end", NOTHING)
    while left:
        state = min(left, key=ways.cost)
        left.remove(state)
        ways.leave_out(state)
    return ways.way("start", "end")


def _ending(moves: dict[Language, Moves]) -> list[Language]:
    """Return the states from which strings may end, in the order in which they were found."""
    ending = {state for state in moves if state.empty}
    size = 0
    while size < len(ending):
        size = len(ending)
        ending |= {state for state, targets in moves.items() if not ending.isdisjoint(targets)}
    return [state for state in moves if state in ending]


def _joined(*nodes: Node) -> Node:
    parts: list[Node] = []
    for node in nodes:
        parts += node.parts if isinstance(node, Sequence) else [node]
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))


def _either(one: Node, other: Node) -> Node:
    if isinstance(one, Chars) and isinstance(other, Chars):
        return Chars(union(one.ranges, other.ranges))
    if NOTHING.node in (one, other):
        return Repeat(other if one == NOTHING.node else one, 0, 1)
    options = [part for node in (one, other) for part in _options(node)]
    return Choice(tuple(options))


def _options(node: Node) -> tuple[Node, ...]:
    return node.options if isinstance(node, Choice) else (node,)
