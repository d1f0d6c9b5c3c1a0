"""Patterns of JSON Schema, as the compiler's grammars have them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.ebnf import NOTHING, OTHER, characters, literal
from ovchat_server.chat.dialects.json_patterns import CLASS_ITEM, TOKEN, PatternError, json_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.chat.dialects.ebnf import Ranges

DIGITS: Ranges = [(ord("0"), ord("9"))]
SHORTHANDS: dict[str, Ranges] = {
    r"\d": DIGITS,
    r"\w": [*DIGITS, (ord("A"), ord("Z")), (ord("_"), ord("_")), (ord("a"), ord("z"))],
}
_PART = re.compile(
    rf"(?P<times>[*+?]|\{{\d+(?:,\d*)?\}})\??|(?P<group>\((?:\?:)?|[|)])|{TOKEN.pattern}", re.DOTALL
)


def pattern(regex: str, barred: str = "", instead: Mapping[str, str] | None = None) -> str:
    """What a pattern of strings matches, as far as it holds nothing that JSON escapes.

    Args:
        regex: A pattern of JSON Schema.
        barred: Characters that it shall not hold, but where it asks for nothing else.
        instead: What to write for those that it asks for.

    Raises:
        PatternError: It cannot be written.
    """
    parts: list[str] = []
    # How many alternatives the open groups have already.
    groups: list[int] = []
    for part in _PART.finditer(json_pattern(regex)[1:-1]):
        if part["times"]:
            if parts[-1] in ("(", "|"):
                raise PatternError("repeats nothing, or looks ahead")
            # How much is matched first makes no difference.
            parts.append(part["times"])
        elif part["group"]:
            parts += _grouping(part["group"], groups, parts)
        else:
            parts.append(_character(part[0], barred, instead or {}))
    if groups:
        raise PatternError("leaves a group open")
    return " ".join(parts).replace(" {", "{")


def _grouping(mark: str, groups: list[int], parts: list[str]) -> list[str]:
    if mark.startswith("("):
        groups.append(0)
        return ["("]
    if not groups:
        raise PatternError("closes what is not open")
    if mark == "|":
        groups[-1] += 1
        return [f"{OTHER}{groups[-1] - 1}", "|"]
    others = groups.pop()
    if others:
        return [f"{OTHER}{others}", ")"]
    return [NOTHING, ")"] if parts[-1] == "(" else [")"]


def _character(part: str, barred: str, instead: Mapping[str, str]) -> str:
    if part == "[":
        raise PatternError("leaves a bracket open")
    if part in SHORTHANDS:
        return characters(SHORTHANDS[part])
    if len(part) > 1 and part.startswith("["):
        negated = part.startswith("[^")
        ranges = _ranges(part[2 if negated else 1 : -1])
        singles = [(ord(char), ord(char)) for char in barred]
        if negated:
            return characters([*ranges, *singles], negated=True)
        for code, _ in singles:
            ranges = _without(ranges, code)
        if not ranges:
            raise PatternError("asks for characters that cannot be written")
        return characters(ranges)
    char = chr(_code(part))
    if char in barred:
        if char not in instead:
            raise PatternError("asks for a character that cannot be written")
        return literal(instead[char])
    return literal(char)


def _ranges(items: str) -> Ranges:
    ranges: Ranges = []
    for first, last in CLASS_ITEM.findall(items):
        if first in SHORTHANDS:
            ranges += SHORTHANDS[first]
        else:
            ranges.append((_code(first), _code(last or first)))
    return ranges


def _without(ranges: Ranges, code: int) -> Ranges:
    parts = [
        part
        for low, high in ranges
        for part in ((low, min(high, code - 1)), (max(low, code + 1), high))
    ]
    return sorted({(low, high) for low, high in parts if low <= high})


def _code(token: str) -> int:
    number = re.fullmatch(r"\\[xu]([0-9A-Fa-f]+)", token)
    if number:
        return int(number[1], 16)
    if len(token) > 1 and token[-1].isalnum():
        raise PatternError(f"uses {token}")
    return ord(token[-1])
