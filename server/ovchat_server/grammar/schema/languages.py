"""Languages: sets of strings that tell what may follow a character.

What may follow is a derivative (Brzozowski, Derivatives of Regular Expressions). Intersections and
complements have one as well as choices have, so that they need no automaton first, and what looks
ahead in a pattern is an intersection with all that follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ovchat_server.grammar.schema.code_points import EVERY, Ranges, holds
from ovchat_server.grammar.schema.nodes import (
    Ahead,
    Chars,
    Choice,
    Node,
    PatternError,
    Repeat,
    Sequence,
    looks_ahead,
    width,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LANGUAGES = 6_000
# Of what choices and intersections are made of.
MAX_EFFORT = 80_000
TOO_LARGE = "is too large to be combined with the other constraints on the same string"


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A set of strings.

    Attributes:
        kind: How it is made of its parts.
        parts: Languages, sets of characters and counts.
        empty: Whether the empty string is in it.
    """

    kind: str
    parts: tuple[Any, ...]
    empty: bool


class Languages:
    """Makes languages, the same one once."""

    def __init__(self) -> None:
        """Start with the simplest."""
        self._made: dict[tuple[object, ...], Language] = {}
        self._after: dict[tuple[Language, str], Language] = {}
        self._effort = 0
        # All sets of characters that languages are made of.
        self.sets: set[Ranges] = set()
        self.none = self._make("union", frozenset())
        self.end = self._make("end", empty=True)
        self.all = self._make("repeat", self._chars(EVERY), 0, None, empty=True)

    def _make(self, kind: str, *parts: object, empty: bool = False) -> Language:
        made = self._made.get((kind, *parts))
        if made is None:
            if len(self._made) >= MAX_LANGUAGES:
                raise PatternError(TOO_LARGE)
            made = self._made[(kind, *parts)] = Language(kind, parts, empty)
        return made

    def _chars(self, ranges: Ranges) -> Language:
        self.sets.add(ranges)
        return self._make("chars", ranges) if ranges else self.none

    def _then(self, one: Language, other: Language) -> Language:
        if one is self.none or other is self.none:
            return self.none
        if one is self.end or (one is self.all and other is self.all):
            return other
        if other is self.end:
            return one
        parts = [one]
        while parts[-1].kind == "then":
            parts += parts.pop().parts
        for part in reversed(parts):
            other = self._make("then", part, other, empty=part.empty and other.empty)
        return other

    def union(self, languages: Iterable[Language]) -> Language:
        """Return the union."""
        found = self._flat("union", languages)
        if self.all in found:
            return self.all
        if len(found) == 1:
            return next(iter(found))
        return self._make("union", found, empty=any(language.empty for language in found))

    def intersection(self, languages: Iterable[Language]) -> Language:
        """Return the intersection."""
        found = self._flat("intersection", languages) - {self.all}
        if self.none in found:
            return self.none
        if not found - {first := next(iter(found), self.all)}:
            return first
        return self._make("intersection", found, empty=all(language.empty for language in found))

    def _flat(self, kind: str, languages: Iterable[Language]) -> frozenset[Language]:
        flat: set[Language] = set()
        for language in languages:
            flat |= language.parts[0] if language.kind == kind else {language}
        self._effort += len(flat)
        if self._effort > MAX_EFFORT:
            raise PatternError(TOO_LARGE)
        return frozenset(flat)

    def complement(self, language: Language) -> Language:
        """Return the complement."""
        if language.kind == "complement":
            complement: Language = language.parts[0]
            return complement
        if language is self.none:
            return self.all
        if language is self.all:
            return self.none
        return self._make("complement", language, empty=not language.empty)

    def _repeat(self, part: Language, fewest: int, most: int | None) -> Language:
        if most == 0 or part is self.end:
            return self.end
        if part is self.none:
            return self.none if fewest else self.end
        if (fewest, most) == (1, 1):
            return part
        fewest = 0 if part.empty else fewest
        return self._make("repeat", part, fewest, most, empty=not fewest)

    def of(self, node: Node, follow: Language | None = None) -> Language:
        """Return the language of a tree, with what follows it.

        Raises:
            PatternError: It is too large.
        """
        follow = self.end if follow is None else follow
        match node:
            case Chars(ranges):
                return self._then(self._chars(ranges), follow)
            case Sequence(parts):
                for part in reversed(parts):
                    follow = self.of(part, follow)
                return follow
            case Choice(options):
                return self.union(self.of(option, follow) for option in options)
            case Ahead(part, wanted):
                ahead = self.of(part)
                return self.intersection([ahead if wanted else self.complement(ahead), follow])
            case Repeat(part, fewest, most):
                if not looks_ahead(part):
                    return self._then(self._repeat(self.of(part), fewest, most), follow)
                return self._looking(part, fewest, most, follow)

    def _looking(self, part: Node, fewest: int, most: int | None, follow: Language) -> Language:
        """Repeat what looks ahead over what follows the last time."""
        if most is None:
            if not width(part)[0]:
                raise PatternError("has a lookahead inside a repetition")
            most = fewest
            follow = self._make("loop", part, follow, empty=follow.empty)
            self.of(part)
        if most > MAX_LANGUAGES:
            raise PatternError("has a lookahead inside a repetition")
        for index in range(most):
            more = self.of(part, follow)
            follow = more if index >= most - fewest else self.union([more, follow])
        return follow

    def after(self, language: Language, char: str) -> Language:
        """Return what may follow a character with which strings of a language begin."""
        found = self._after.get((language, char))
        if found is None:
            found = self._after[language, char] = self._derived(language, char)
        return found

    def _derived(self, language: Language, char: str) -> Language:
        found = self.none
        match language.kind, language.parts:
            case "chars", (ranges,):
                found = self.end if holds(ranges, char) else self.none
            case "then", (one, rest):
                found = self._then(self.after(one, char), rest)
                if one.empty:
                    found = self.union([found, self.after(rest, char)])
            case "union", (languages,):
                found = self.union(self.after(one, char) for one in languages)
            case "intersection", (languages,):
                found = self.intersection(self.after(one, char) for one in languages)
            case "complement", (one,):
                found = self.complement(self.after(one, char))
            case "repeat", (part, fewest, most):
                more = self._repeat(part, max(fewest - 1, 0), None if most is None else most - 1)
                found = self._then(self.after(part, char), more)
            case "loop", (part, follow):
                again = self.of(part, language)
                found = self.union([self.after(again, char), self.after(follow, char)])
        return found
