"""Strings of a length, patterns and formats, as trees."""

from __future__ import annotations

import contextlib
from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.automata import in_common, inside
from ovchat_server.grammar.schema.code_points import EVERY
from ovchat_server.grammar.schema.formats import beside_patterns, fitted_format
from ovchat_server.grammar.schema.languages import TOO_LARGE
from ovchat_server.grammar.schema.nodes import (
    Chars,
    Node,
    PatternError,
    Repeat,
    fitted,
    looks_ahead,
)
from ovchat_server.grammar.schema.patterns import found_in, read_pattern

if TYPE_CHECKING:
    from ovchat_server.grammar.schema.shapes import String

ANY = Chars(EVERY)
# In one schema: to find out what a pattern has in common with others takes time.
MAX_COMBINED = 20
MAX_KEPT = 50


class Strings:
    """Makes trees of the strings of one schema."""

    def __init__(self) -> None:
        """Start with none."""
        self._combined: set[String] = set()

    def node(self, shape: String) -> Node:
        """Return the texts of some strings.

        Raises:
            PatternError: Those of a pattern cannot be told.
        """
        match shape.patterns, shape.formats:
            case (), ():
                return Repeat(ANY, shape.shortest, shape.longest)
            case (), (name,):
                return fitted_format(name, shape.shortest, shape.longest)
            case (pattern,), ():
                node = read_pattern(pattern)
                if not looks_ahead(node):
                    with contextlib.suppress(PatternError):
                        return fitted(node, shape.shortest, shape.longest)
        return self._together(shape)

    def _together(self, shape: String) -> Node:
        self._combined.add(shape)
        if len(self._combined) > MAX_COMBINED:
            self._combined.remove(shape)
            raise PatternError("is one of too many to be combined")
        found = _together(shape)
        if isinstance(found, PatternError):
            raise PatternError(str(found))
        return found


@lru_cache(MAX_KEPT)
def _together(shape: String) -> Node | PatternError:
    """Return a tree of strings that match all patterns and have all formats, or why there is none.

    That is kept, too: what is left out of a schema is found by trying.
    """
    patterns = [*map(found_in, shape.patterns)]
    problem = PatternError("no string matches together with the constraints beside it")
    beside = [[*patterns, *nodes] for nodes in product(*map(beside_patterns, shape.formats))]
    if len(shape.patterns) == 1 and not shape.formats:
        # By itself a pattern without anchors is the whole string, where that has its length.
        beside.insert(0, [read_pattern(shape.patterns[0])])
    for nodes in beside:
        # One that lies within the others is written as it is.
        ways = [
            partial(_only, node, [*nodes[:at], *nodes[at + 1 :]]) for at, node in enumerate(nodes)
        ]
        for way in (*ways, partial(_common_of_length, nodes), partial(_common, nodes)):
            try:
                found = way(shape.shortest, shape.longest)
            except PatternError as error:
                problem = PatternError(str(error))
                continue
            except RecursionError:
                problem = PatternError(TOO_LARGE)
                continue
            if found is not None:
                return found
    return problem


def _only(node: Node, others: list[Node], shortest: int, longest: int | None) -> Node | None:
    if looks_ahead(node):
        return None
    node = fitted(node, shortest, longest)
    return node if inside(node, others) else None


def _common(nodes: list[Node], shortest: int, longest: int | None) -> Node | None:
    node = in_common(nodes)
    return None if node is None else fitted(node, shortest, longest)


def _common_of_length(nodes: list[Node], shortest: int, longest: int | None) -> Node | None:
    return in_common([*nodes, Repeat(ANY, shortest, longest)])
