"""Patterns of JSON Schema: regular expressions, read as trees.

Where JavaScript and Python differ, the tree has what both match.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.code_points import EVERY, LAST, ranges, union, without
from ovchat_server.grammar.schema.nodes import (
    Ahead,
    Chars,
    Node,
    PatternError,
    Repeat,
    Sequence,
    choice,
)

if TYPE_CHECKING:
    from ovchat_server.grammar.schema.code_points import Ranges

MAX_GROUPS = 100
NEW_LINES = ranges("\n\n\r\r\u2028\u2029")
ANY = Chars(EVERY)
ANYTHING = Repeat(ANY, 0, None)
DIGITS, WORD = ranges("09"), ranges("azAZ09__")
SPACE = ranges("  ")
# The characters of a class in every dialect of regular expressions, and in any.
SURE = {"d": DIGITS, "w": WORD, "s": SPACE}
MAYBE: dict[str, Ranges] = {
    "d": union(DIGITS, ((0x660, LAST),)),
    "w": union(WORD, ((0x80, LAST),)),
    "s": union(
        ((0, 0x20),),
        ranges("\x85\x85\xa0\xa0\u1680\u1680\u2000\u200a\u2028\u2029\u202f\u202f\u205f\u205f"),
        ranges("\u3000\u3000\ufeff\ufeff"),
    ),
}
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
GROUP = re.compile(r"\?(?::|P?<[A-Za-z_]\w*>)")
# Groups at the very beginning, the last of which looks ahead.
START = re.compile(r"\^(?:\((?:\?:)?)*\(\?[=!]")
QUANTIFIER = re.compile(r"(?:([*+?])|\{([0-9]{1,5})(?:(,)([0-9]{1,5})?)?\})\??")
CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def read_pattern(pattern: str) -> Node:
    """Return the tree of strings that match a pattern.

    A side without an anchor may be anything; but without any anchor the pattern is the whole
    string, as it is nearly always meant.

    Raises:
        PatternError: The pattern is not supported.
    """
    return _Reader(pattern, wide=False, loose=False).whole()


def found_in(pattern: str) -> Node:
    """Return the tree of strings of which a pattern matches a part.

    Raises:
        PatternError: The pattern is not supported.
    """
    return _Reader(pattern, wide=False, loose=True).whole()


def may_match(pattern: str) -> Node:
    """Return a tree of all strings of which the pattern may match a part, and maybe more.

    Raises:
        PatternError: The pattern is not supported.
    """
    return _Reader(pattern, wide=True, loose=True).whole()


class _Reader:
    """Reads one pattern."""

    def __init__(self, text: str, *, wide: bool, loose: bool) -> None:
        self._text = text
        self._at = 0
        self._groups = 0
        self._wide = wide
        self._loose = loose

    def whole(self) -> Node:
        options = [self._anchored()]
        while self._take("|"):
            options.append(self._anchored())
        if self._at < len(self._text):
            raise PatternError("has an unmatched closing parenthesis")
        return choice(options)

    def _anchored(self) -> Node:
        starts = self._take("^")
        parts = self._parts()
        ends = self._take("$")
        if ends and self._next() not in ("", "|"):
            raise PatternError("has an anchor inside")
        loose = self._loose or starts or ends or not parts
        before = [ANYTHING] if loose and not starts else []
        after = [ANYTHING] if loose and not ends else []
        return Sequence((*before, *parts, *after))

    def _parts(self, *, ahead: bool = False) -> list[Node]:
        parts: list[Node] = []
        while self._next() not in ("", "|", ")"):
            if self._next() == "$" and (ahead or not self._groups):
                break
            atom = self._atom()
            found = QUANTIFIER.match(self._text, self._at)
            if found:
                self._at = found.end()
                atom = _repeated(atom, found)
            if self._next() in ("*", "+", "?", "{"):
                raise PatternError("has a quantifier with nothing to repeat")
            parts.append(atom)
        return parts

    def _atom(self) -> Node:
        match char := self._step():
            case "(":
                return self._group()
            case "[":
                return Chars(self._class())
            case ".":
                return Chars(without(EVERY, ranges("\n\n") if self._wide else NEW_LINES))
            case "\\":
                sure, maybe = self._escape()
                return Chars(maybe if self._wide else sure)
            case "^" | "$":
                raise PatternError("has an anchor inside")
            case "*" | "+" | "?" | "{":
                raise PatternError("has a quantifier with nothing to repeat")
        return Chars(ranges(char * 2))

    def _group(self) -> Node:
        self._groups += 1
        if self._groups > MAX_GROUPS:
            raise PatternError(f"nests parentheses deeper than {MAX_GROUPS}")
        if self._next() == "?":
            if self._text[self._at + 1 : self._at + 2] in ("=", "!"):
                return self._ahead()
            found = GROUP.match(self._text, self._at)
            if not found:
                raise PatternError("uses a lookbehind or flags")
            self._at = found.end()
        options: list[Node] = [Sequence(tuple(self._parts()))]
        while self._take("|"):
            options.append(Sequence(tuple(self._parts())))
        if not self._take(")"):
            raise PatternError("has an unclosed parenthesis")
        self._groups -= 1
        return choice(options)

    def _ahead(self) -> Node:
        wanted = self._text[self._at + 1] == "="
        self._at += 2
        if START.fullmatch(self._text, 0, self._at):
            self._take("^")
        # What may not follow, it must not in any dialect.
        self._wide ^= not wanted
        options: list[Node] = []
        while not options or self._take("|"):
            parts = self._parts(ahead=True)
            options.append(Sequence((*parts, *([] if self._take("$") else [ANYTHING]))))
        self._wide ^= not wanted
        if not self._take(")"):
            raise PatternError("has an unclosed parenthesis")
        self._groups -= 1
        return Ahead(choice(options), wanted)

    def _class(self) -> Ranges:
        excludes = self._take("^")
        surely: list[Ranges] = []
        maybe: list[Ranges] = []
        if self._next() == "]":
            raise PatternError("has empty brackets")
        while not self._take("]"):
            item = self._class_item()
            if self._next() == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                last = self._class_item()
                if not _single(item) or not _single(last) or last[0][0][0] < item[0][0][0]:
                    raise PatternError("has an invalid character range")
                item = last = (((item[0][0][0], last[0][0][1]),),) * 2
            surely.append(item[0])
            maybe.append(item[1])
        if excludes:
            return without(EVERY, union(*(surely if self._wide else maybe)))
        return union(*(maybe if self._wide else surely))

    def _class_item(self) -> tuple[Ranges, Ranges]:
        match char := self._step():
            case "\\":
                return self._escape()
            case "":
                raise PatternError("has an unclosed bracket")
        return (ranges(char * 2),) * 2

    def _escape(self) -> tuple[Ranges, Ranges]:
        """Read behind a backslash: the characters that it surely and that it possibly matches."""
        found = CODE.match(self._text, self._at)
        if found:
            self._at = found.end()
            char = chr(int(found[1] or found[2], 16))
            return (ranges(char * 2),) * 2
        char = self._step()
        if char in SURE:
            return SURE[char], MAYBE[char]
        if char and char.lower() in SURE:
            kind = char.lower()
            return without(EVERY, MAYBE[kind]), without(EVERY, SURE[kind])
        if char in CONTROLS:
            return (ranges(CONTROLS[char] * 2),) * 2
        if not char or char.isalnum() or char == "_":
            raise PatternError("has a back reference or an unknown escape")
        return (ranges(char * 2),) * 2

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _step(self) -> str:
        char = self._next()
        self._at += 1
        return char

    def _take(self, char: str) -> bool:
        taken = self._next() == char
        self._at += taken
        return taken


def _single(item: tuple[Ranges, Ranges]) -> bool:
    sure, maybe = item
    return sure == maybe and len(sure) == 1 and sure[0][0] == sure[0][1]


def _repeated(atom: Node, found: re.Match[str]) -> Node:
    sign, low, comma, high = found.groups()
    if sign:
        return Repeat(atom, *SIGNS[sign])
    fewest = int(low)
    most = int(high) if high else None if comma else fewest
    if most is not None and most < fewest:
        raise PatternError("repeats too often")
    return Repeat(atom, fewest, most)
