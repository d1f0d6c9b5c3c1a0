"""The compiler's EBNF (xgrammar 0.1.31): texts and trees in its words, and grammars of rules."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.grammar.patterns import MISREAD_LETTER
from ovchat_server.grammar.schema.code_points import Ranges, common, ranges, union
from ovchat_server.grammar.schema.json_text import escaped as json_escaped
from ovchat_server.grammar.schema.nodes import Chars, Choice, Node, PatternError, Repeat, Sequence

if TYPE_CHECKING:
    import re

# What JSON strings may hold as it is, but for halves of characters.
PLAIN = union(ranges(" !#[]\ud7ff\ue000\ufffd"), ((0x10000, 0x10FFFF),))
MAX_ESCAPED = 40


def quoted(text: str) -> str:
    """A text as it is."""
    # It reads such a letter and a digit or a to f behind it as one number.
    literal = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{MISREAD_LETTER.sub(_split, literal)}"'


def _split(letter: re.Match[str]) -> str:
    return f'{letter[0]}" "'


def string_content(node: Node) -> str:
    """What a tree matches, between the quotation marks of a JSON string.

    Only characters that cannot stand there as they are are escaped, if there is no choice.

    Raises:
        PatternError: It asks for what JSON strings do not hold.
    """
    match node:
        case Chars(wanted):
            return _chars(wanted)
        case Sequence(parts):
            return " ".join(filter(None, map(string_content, parts))) or '""'
        case Choice(options):
            return f"({' | '.join(map(string_content, options))})"
        case Repeat(part, fewest, most):
            if most == 0:
                return '""'
            return f"({string_content(part)}){repetition(fewest, most)}"


def repetition(fewest: int, most: int | None) -> str:
    """How often what stands before may come."""
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return known.get((fewest, most)) or f"{{{fewest},{'' if most is None else most}}}"


def _chars(wanted: Ranges) -> str:
    plain = common(wanted, PLAIN)
    if plain:
        return f"[{''.join(map(_range, plain))}]"
    escaped = [
        chr(code) for first, last in common(wanted, ((0, 0x5C),)) for code in range(first, last + 1)
    ]
    if not escaped or len(escaped) > MAX_ESCAPED:
        raise PatternError("asks for characters that JSON strings do not hold")
    written = [quoted(json_escaped(char)) for char in escaped]
    return f"({' | '.join(written)})"


def _range(item: tuple[int, int]) -> str:
    first, last = map(_code, item)
    return first if first == last else f"{first}-{last}"


def _code(code: int) -> str:
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    return f"\\U{code:08x}"


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


def grammar(rules: list[Rule]) -> str:
    """The grammar of some rules, the first of them its root, without what never ends.

    "" where nothing follows the first.
    """
    ending = _ending(rules)
    if rules[0].number not in ending:
        return ""
    used = {0: rules[0]}
    waiting = [rules[0]]
    lines = [f"root ::= {rules[0].name}"]
    while waiting:
        rule = waiting.pop()
        alternatives = _ended(rule, ending)
        lines.append(f"{rule.name} ::= {' | '.join(map(_body, alternatives))}")
        for needed in itertools.chain.from_iterable(map(_needed, alternatives)):
            if needed.number not in used:
                used[needed.number] = needed
                waiting.append(needed)
    return "\n".join(lines)


def _ending(rules: list[Rule]) -> set[int]:
    """The numbers of the rules that come to an end."""
    ending: set[int] = set()
    # Alternatives by what they wait for: whose they are, and for what else they wait.
    waiting: dict[int, list[tuple[int, set[int]]]] = {}
    found: list[int] = []
    for rule in rules:
        for alternative in rule.alternatives:
            needed = {other.number for other in _needed(alternative)}
            if not needed:
                found.append(rule.number)
            for number in needed:
                waiting.setdefault(number, []).append((rule.number, needed))
    while found:
        number = found.pop()
        if number in ending:
            continue
        ending.add(number)
        for owner, needed in waiting.get(number, []):
            needed.discard(number)
            if not needed:
                found.append(owner)
    return ending


def _ended(rule: Rule, ending: set[int]) -> list[Alternative]:
    """The alternatives of a rule that come to an end, if the rules `ending` do."""
    return [
        alternative
        for alternative in rule.alternatives
        if all(needed.number in ending for needed in _needed(alternative))
    ]


def _needed(alternative: Alternative) -> list[Rule]:
    return [
        part.rule if isinstance(part, Again) else part
        for part in alternative
        if not isinstance(part, str)
    ]


def _body(alternative: Alternative) -> str:
    parts = [part if isinstance(part, str) else part.name for part in alternative]
    return " ".join(filter(None, parts)) or '""'
