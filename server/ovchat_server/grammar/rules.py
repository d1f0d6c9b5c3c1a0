"""Grammars of the compiler's EBNF (xgrammar 0.1.31), rule by rule."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.grammar.ebnf import END, LITERAL, repetition
from ovchat_server.grammar.schema.errors import TooLargeError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

MAX_RULES = 20_000
# Parts of a rule that may stand in another one's place.
MAX_INLINE = 50


@dataclass(slots=True)
class Rule:
    """A rule: its alternatives, each a sequence of texts in EBNF and of rules.

    Attributes:
        number: Its name in the grammar.
    """

    number: int
    alternatives: list[Alternative] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What it is called."""
        return f"r{self.number}"


@dataclass(frozen=True, slots=True)
class Again:
    """A rule several times, at least once."""

    rule: Rule
    fewest: int
    most: int | None

    @property
    def name(self) -> str:
        """How that is written."""
        return f"{self.rule.name}{repetition(self.fewest, self.most)}"


Alternative = tuple[str | Rule | Again, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object or list that may stand between brackets.

    Attributes:
        parts: Its text.
        needed: It cannot be left out.
    """

    parts: Alternative
    needed: bool = False


class Rules:
    """Rules; the first is the root of the grammar."""

    def __init__(self) -> None:
        """Start with none."""
        self.rules: list[Rule] = []

    def new(self, alternatives: list[Alternative]) -> Rule:
        """Add a rule.

        Raises:
            TooLargeError: There are too many.
        """
        if len(self.rules) >= MAX_RULES:
            raise TooLargeError("is too large when written as a grammar")
        self.rules.append(Rule(len(self.rules), alternatives))
        return self.rules[-1]

    def optional_subset(
        self,
        members: list[Member],
        fewest: int,
        most: int | None,
        closing: str,
        separator: str,
    ) -> Alternative:
        """Return a subset of members, in their order, and what closes it.

        Args:
            members: The members to choose from.
            fewest: The minimum number of members.
            most: The maximum number of members; None: all of them.
            closing: EBNF of what follows the last one.
            separator: EBNF of what stands between two; "" for nothing.
        """
        if most is not None and most >= len(members):
            most = None
        # Beyond this count, further members make no difference.
        counted = max(1 if separator else 0, fewest if most is None else most)
        if fewest > len(members) or (most is not None and fewest > most):
            return (self.new([]),)
        # Built from the end: what follows after `count` members.
        following: list[Alternative] = [
            (closing,) if count >= fewest else (self.new([]),) for count in range(counted + 1)
        ]
        for member in reversed(members):
            before: list[Alternative] = []
            for count in range(counted + 1):
                options = [] if member.needed else [following[count]]
                if most is None or count < most:
                    after = following[min(count + 1, counted)]
                    options.append((separator if count else "", *member.parts, *after))
                before.append(self.joined(options))
            following = before
        return following[0]

    def joined(self, options: list[Alternative]) -> Alternative:
        """Return one of some alternatives, as a part of another one."""
        short = len(options) == 1 and len(options[0]) <= MAX_INLINE
        return options[0] if short else (self.new(options),)


def again(rule: Rule, fewest: int, most: int | None) -> Alternative:
    """Return a rule several times, where `most` counts one that stands before."""
    return () if most == 1 else (Again(rule, fewest, None if most is None else most - 1),)


def grammar(rules: list[Rule]) -> str:
    """Return the grammar of rules, the first of them its root, without rules that never end.

    "" if the first rule matches nothing.
    """
    ends = ending(rules)
    if rules[0].number not in ends:
        return ""
    used = {0: rules[0]}
    waiting = [rules[0]]
    lines = [f"root ::= {rules[0].name}"]
    while waiting:
        rule = waiting.pop()
        alternatives = _ended(rule, ends)
        lines.append(f"{rule.name} ::= {' | '.join(map(_body, alternatives))}")
        for needed in itertools.chain.from_iterable(map(_needed, alternatives)):
            if needed.number not in used:
                used[needed.number] = needed
                waiting.append(needed)
    return "\n".join(lines)


def blocking(rules: list[Rule], named: Container[int]) -> int:
    """Return the number of a rule of `named` that keeps the first from matching finite texts.

    It does so by itself, or refers to itself wherever it leads.
    """
    ends = ending(rules)
    seen: set[int] = set()
    found, rule = 0, rules[0]
    while rule.number not in seen:
        seen.add(rule.number)
        if rule.number in named:
            found = rule.number
        # What may be left out is left out first.
        for needed in _needed(rule.alternatives[0]) if rule.alternatives else ():
            if needed.number not in ends:
                rule = needed
                break
    return found


def ending(rules: list[Rule], assumed: Iterable[int] = ()) -> set[int]:
    """Return the numbers of the rules that match finite texts, if those `assumed` do."""
    ends: set[int] = set()
    # Alternatives by what they wait for: whose they are, and for what else they wait.
    waiting: dict[int, list[tuple[int, set[int]]]] = {}
    found: list[int] = [*assumed]
    for rule in rules:
        for alternative in rule.alternatives:
            needed = {other.number for other in _needed(alternative)}
            if not needed:
                found.append(rule.number)
            for number in needed:
                waiting.setdefault(number, []).append((rule.number, needed))
    while found:
        number = found.pop()
        if number in ends:
            continue
        ends.add(number)
        for owner, needed in waiting.get(number, []):
            needed.discard(number)
            if not needed:
                found.append(owner)
    return ends


def _ended(rule: Rule, ends: set[int]) -> list[Alternative]:
    """Return the alternatives of a rule that match finite texts, given the rules that do."""
    return [
        alternative
        for alternative in rule.alternatives
        if all(needed.number in ends for needed in _needed(alternative))
    ]


def _needed(alternative: Alternative) -> list[Rule]:
    return [
        part.rule if isinstance(part, Again) else part
        for part in alternative
        if not isinstance(part, str)
    ]


def disambiguate(options: list[Alternative]) -> list[Alternative]:
    """Return alternatives, each with a different empty rule at its end where they may begin alike.

    The compiler wrongly merges the common parts of such alternatives: `b` or `baa` becomes any
    number of those. Different rules at their ends prevent it.
    """
    if len({first_letter(option) for option in options} - {""}) == len(options):
        return options
    return [(*option, f"{END}{number}") for number, option in enumerate(options)]


def ends(grammar: str) -> list[str]:
    """Return the rules of the ends that a grammar refers to."""
    return [f'{name} ::= ""' for name in dict.fromkeys(re.findall(rf"\b{END}\d+\b", grammar))]


def first_letter(alternative: Alternative) -> str:
    """Return the first letter of an alternative; "" where it is not a literal."""
    for part in alternative:
        if part not in ("", '""'):
            if not isinstance(part, str) or not LITERAL.match(part):
                return ""
            return part[1:3] if part[1] == "\\" else part[1]
    return ""


def _body(alternative: Alternative) -> str:
    parts = [part if isinstance(part, str) else part.name for part in alternative]
    return " ".join(filter(None, parts)) or '""'
