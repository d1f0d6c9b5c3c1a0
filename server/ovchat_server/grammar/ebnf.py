"""Expressions of the compiler's EBNF (xgrammar 0.1.31): texts, characters, and trees of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.code_points import Ranges, characters, common, union, without
from ovchat_server.grammar.schema.nodes import (
    Ahead,
    Chars,
    Choice,
    Node,
    PatternError,
    Repeat,
    Sequence,
    first_characters,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LAST_ASCII = 0x7F
ASCII: Ranges = ((0, LAST_ASCII),)
# Characters of answers: no controls, no halves of characters.
CHARACTERS: Ranges = ((0x20, 0xD7FF), (0xE000, 0x10FFFF))
# Of alternatives that are kept apart.
END = "end"
# How many characters are escaped where there is no other choice.
MAX_ESCAPED = 40
# Multiples of these begin characters whose first bytes are others, or more.
BLOCKS = (0x40000, 0x10000, 0x1000, 0x800, 0x80, 0x40)
ESCAPES = {'"': r"\"", "\\": r"\\"}
# Between what the compiler would read as one number.
BROKEN = re.compile("(?<=[\x80-\xff])(?=[0-9A-Fa-f])|(?<=\\\\x[01][0-9a-f])(?=[0-9A-Fa-f])")

LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')


def literal(text: str) -> str:
    """Return the EBNF of one text."""
    written = "".join(
        f"\\x{ord(char):02x}" if char < " " else ESCAPES.get(char, char) for char in text
    )
    return f'"{BROKEN.sub(chr(34) + " " + chr(34), written)}"'


def joined(*expressions: str) -> str:
    """Return the EBNF of one after the other; texts that follow each other are one text."""
    parts: list[str] = []
    for part in filter(None, expressions):
        if parts and LITERAL.fullmatch(parts[-1]) and LITERAL.fullmatch(part):
            whole = parts[-1][:-1] + part[1:]
            if not BROKEN.search(whole):
                parts[-1] = whole
                continue
        parts.append(part)
    return " ".join(parts)


def until(tag: str) -> str:
    """Return the body of a rule: any text, with the `tag` that it ends in."""
    return f"TagDispatch(stop_eos=false, stop_str=({literal(tag)}), loop_after_dispatch=false)"


def repetition(fewest: int, most: int | None) -> str:
    """Return how often what stands before may come."""
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return known.get((fewest, most)) or f"{{{fewest},{'' if most is None else most}}}"


def character_class(wanted: Ranges) -> str:
    """Return the EBNF of one character of some.

    In ranges that begin or end inside of a block of UTF-8 the compiler takes longer forms of
    characters, and first bytes that nothing follows: behind those an answer would be free.
    """
    ascii_only = [*map(_range, common(wanted, ASCII))]
    # The compiler takes a letter behind a short number for more of it.
    ascii_only.sort(key=lambda text: text.startswith("\\x"))
    others = (part for item in without(wanted, ASCII) for part in _aligned(*item))
    return f"[{''.join([*ascii_only, *map(_range, others)])}]"


def _aligned(low: int, high: int) -> Iterator[tuple[int, int]]:
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


def _range(item: tuple[int, int]) -> str:
    letters = any(chr(code).isalnum() for code in item)
    size = "x02" if item[1] <= LAST_ASCII and not letters else "U08"
    first, last = (_code(code, size) for code in item)
    return first if first == last else f"{first}-{last}"


def _code(code: int, size: str) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\{size[0]}{code:{size[1:]}x}"


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The characters of strings, and how others are written.

    Attributes:
        plain: Those that stand for themselves.
        escape: Writes another one; None where it cannot be written.
        banned: Sets of characters of which one must be left out, so that no string holds what
            ends it. The first is left out where that can be.
    """

    plain: Ranges
    escape: Callable[[str], str | None]
    banned: tuple[str, ...] = ("",)

    def content(self, node: Node) -> str:
        """Return the EBNF of the texts of a tree.

        Only characters that cannot stand for themselves are escaped, if there is no choice.

        Raises:
            PatternError: It asks for what cannot be written.
        """
        *others, last = self.banned
        for banned in others:
            try:
                return self._content(node, self._without(banned))
            except PatternError:
                continue
        return self._content(node, self._without(last))

    def _without(self, banned: str) -> Ranges:
        return without(self.plain, characters(banned))

    def _content(self, node: Node, plain: Ranges) -> str:
        match node:
            case Chars(wanted):
                return self._chars(wanted, plain)
            case Sequence(parts):
                texts = [self._content(part, plain) for part in parts]
                return " ".join(text for text in texts if text != '""') or '""'
            case Choice(options):
                texts = [self._content(option, plain) for option in options]
                if not _begin_differently(options):
                    texts = [f"{text} {END}{number}" for number, text in enumerate(texts)]
                return f"({' | '.join(texts)})"
            case Repeat(part, fewest, most):
                if most == 0:
                    return '""'
                return f"({self._content(part, plain)}){repetition(fewest, most)}"
            case Ahead():
                raise PatternError("looks ahead")

    def _chars(self, wanted: Ranges, plain: Ranges) -> str:
        allowed = common(wanted, plain)
        if allowed:
            return character_class(allowed)
        codes = [code for low, high in common(wanted, ASCII) for code in range(low, high + 1)]
        written = [text for code in codes if (text := self.escape(chr(code))) is not None]
        if not written or len(written) > MAX_ESCAPED:
            raise PatternError("asks for characters that cannot be written")
        return f"({' | '.join(map(literal, written))})"


def _begin_differently(options: tuple[Node, ...]) -> bool:
    seen: Ranges = ()
    for option in options:
        first = first_characters(option)
        if common(first, seen):
            return False
        seen = union(seen, first)
    return True
