"""Limits on constraints that are checked before any process sees them.

What stays within them may still be too much to compile; that the grammar process finds out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.field_path import Field
    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.reader import Reader

# Of a regular expression or grammar, and of all keys and strings of a schema together.
MAX_CHARACTERS = 64 * 1024
# Values of any kind in a schema. One of 240 fields has 1,500.
MAX_VALUES = 20_000
# Objects and arrays inside each other: a level of a schema takes two. The compiler takes
# seconds for 600, and dies of 20,000.
MAX_DEPTH = 100
# Parentheses inside each other.
MAX_GROUPS = 100
# OpenAI's, over a whole schema.
MAX_ENUM_VALUES = 1000
MAX_CHOICES = 1000

# The compiler (xgrammar 0.1.31) reads such a letter and what follows as one hexadecimal number.
MISREAD = re.compile("[\x80-\xff][0-9A-Fa-f]")
MISREAD_COMPLAINT = (
    "has a letter such as \u00df before a digit or a to f, which the compiler gets wrong"
)


def refuse_beyond_limits(reader: Reader, field: Field, value: JsonValue) -> bool:
    """Return whether a value is within the limits, and note a violation if not."""
    complaint = beyond_limits(value)
    if complaint:
        reader.refuse(field, complaint)
    return not complaint


def read_pattern(reader: Reader, field: Field, text: str) -> bool:
    """Return whether a regular expression or grammar is within the limits, or note a violation."""
    complaint = ""
    if not text:
        complaint = "must not be empty"
    elif len(text) > MAX_CHARACTERS:
        complaint = f"must have at most {MAX_CHARACTERS} characters, got {len(text)}"
    elif "\0" in text:
        # The compiler would take what stands before it for all.
        complaint = "must not hold NUL characters"
    elif _groups(text) > MAX_GROUPS:
        complaint = f"must not nest parentheses deeper than {MAX_GROUPS}"
    if complaint:
        reader.refuse(field, complaint)
    return not complaint


def beyond_limits(value: JsonValue) -> str:
    """Return which limit a value exceeds, completing "<field> ...", or "" if it is within all.

    Does not recurse: this is the check that makes recursion safe.
    """
    characters = values = enumerated = 0
    open_values = [(value, 1)]
    while open_values:
        item, depth = open_values.pop()
        values += 1
        if depth > MAX_DEPTH:
            return f"is nested more than {MAX_DEPTH} levels deep"
        match item:
            case dict():
                characters += sum(map(len, item))
                open_values += [(child, depth + 1) for child in item.values()]
                listed = item.get("enum")
                enumerated += len(listed) if isinstance(listed, list) else 0
                pattern = item.get("pattern")
                if isinstance(pattern, str) and "\0" in pattern:
                    return "holds a pattern with a NUL character"
            case list():
                open_values += [(child, depth + 1) for child in item]
            case str():
                characters += len(item)
        if values + len(open_values) > MAX_VALUES:
            return f"holds more than {MAX_VALUES} values"
        if enumerated > MAX_ENUM_VALUES:
            return f"holds enums of more than {MAX_ENUM_VALUES} values together"
        if characters > MAX_CHARACTERS:
            return f"holds more than {MAX_CHARACTERS} characters"
    return ""


def _groups(text: str) -> int:
    """Return how deep parentheses nest, without escaped ones and those in brackets."""
    deepest = depth = 0
    escaped = bracket = False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif bracket:
            bracket = char != "]"
        elif char == "[":
            bracket = True
        elif char == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif char == ")":
            depth -= 1
    return deepest
