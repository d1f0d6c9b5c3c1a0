"""Patterns inside JSON strings, as the compiler takes them.

It writes what a pattern matches into the string as it is, so that `.` closes the string with
a quotation mark, or breaks it with a line feed; and it takes the alternatives of a pattern
for alternatives to the string, quotation marks and all (xgrammar 0.1.31).
"""

from __future__ import annotations

import re

# What JSON strings hold only escaped.
FORBIDDEN = r'"\\\x00-\x1f'
# All that JSON strings may hold as it is, but for halves of characters.
ANY = r" -!#-\[\]-\ud7ff\ue000-\ufffd" + "\U00010000-\U0010ffff"
# The compiler reads such a letter and what follows as one hexadecimal number.
MISREAD = re.compile("[\x80-\xff][0-9A-Fa-f]")
MISREAD_LETTER = re.compile("[\x80-\xff](?=[0-9A-Fa-f])")
TOKEN = re.compile(
    r"\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL
)
CLASS_ITEM = re.compile(r"(\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.|.)(?:-(\\x..|\\u....|\\.|.))?")
SHORTHANDS = {
    r"\d": r"\d",
    r"\w": r"\w",
    r"\s": " ",
    r"\D": f"[^0-9{FORBIDDEN}]",
    r"\W": f"[^a-zA-Z0-9_{FORBIDDEN}]",
    r"\S": f"[^ {FORBIDDEN}]",
    ".": f"[{ANY}]",
}
CONTROLS = {r"\n", r"\r", r"\t", r"\f", r"\v", r"\0"}
SPECIAL = re.compile(r"[\\.^$*+?()\[\]{}|/]")


class PatternError(ValueError):
    """A pattern that JSON strings cannot hold; the message completes "uses a pattern that ..."."""


def json_pattern(pattern: str) -> str:
    """A pattern of strings that match `pattern` and stand in JSON without an escape.

    Raises:
        PatternError: There are none, or none that are easy to see.
    """
    body = pattern.removeprefix("^")
    if body.endswith("$") and not body.endswith(r"\$"):
        body = body[:-1]
    return f"^({''.join(map(_safe, TOKEN.findall(body)))})$"


def literal(text: str) -> str:
    """A pattern of one text."""
    return SPECIAL.sub(r"\\\g<0>", text)


def _safe(token: str) -> str:
    if token in SHORTHANDS:
        return SHORTHANDS[token]
    if token in ("^", "$"):
        raise PatternError("has an anchor inside")
    if len(token) > 1 and token.startswith("["):
        return _safe_class(token)
    if _is_forbidden(_code(token)) or token in CONTROLS:
        raise PatternError("asks for a quotation mark, backslash or control character")
    return token


def _safe_class(token: str) -> str:
    if MISREAD.search(token):
        raise PatternError("has a letter such as ß before a digit or a to f in brackets")
    if token.startswith("[^"):
        if re.search(r"\\[SWD]", token):
            raise PatternError("excludes what a shorthand excludes")
        return f"{token[:-1]}{FORBIDDEN}]"
    items = []
    for first, last in CLASS_ITEM.findall(token[1:-1]):
        if not last and first in SHORTHANDS and first != ".":
            if first in (r"\S", r"\W", r"\D"):
                raise PatternError("has an excluding shorthand in brackets")
            items.append(SHORTHANDS[first])
            continue
        low, high = _code(first), _code(last or first)
        controls = first in CONTROLS or last in CONTROLS
        if controls or _is_forbidden(low) or low <= ord('"') <= high or low <= ord("\\") <= high:
            raise PatternError("asks for a quotation mark, backslash or control character")
        items.append(f"{first}-{last}" if last else first)
    return f"[{''.join(items)}]"


def _code(token: str) -> int:
    number = re.fullmatch(r"\\[xu]([0-9A-Fa-f]+)", token)
    return int(number[1], 16) if number else ord(token[-1])


def _is_forbidden(code: int) -> bool:
    return code in (ord('"'), ord("\\")) or code < ord(" ")
