"""How families write values: the strings, words and marks of JSON, of Python, of Gemma."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.ebnf import any_of, excluding, literal, until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CONTROLS = "".join(map(chr, range(0x20)))
KEYWORD = "[a-zA-Z_] [a-zA-Z0-9_]*"
JSON_WORDS = {"true": '"true"', "false": '"false"', "null": '"null"'}
# Models that write Python write JSON's words now and then, and parsers read both.
PYTHON_WORDS = {
    "true": '("True" | "true")',
    "false": '("False" | "false")',
    "null": '("None" | "null")',
}


class UnwritableError(ValueError):
    """What cannot be written so that it is read as what it was."""


@dataclass(frozen=True, slots=True)
class Notation:
    """How values are written inside others.

    Attributes:
        rules: `string` is any string, `key` any key; and what they need.
        text: One string.
        key: One key.
        quote: What stands on both sides of strings that hold nothing to escape.
        words: true, false and null.
        colon: Between a key and its value.
        comma: Between two values.
        barred: What strings hold only escaped, beside what JSON escapes.
        ordered: Properties come in the order of their names, not in the schema's.
    """

    rules: Mapping[str, str]
    text: Callable[[str], str]
    key: Callable[[str], str]
    quote: str = '"'
    words: Mapping[str, str] = field(default_factory=lambda: JSON_WORDS)
    colon: str = ": "
    comma: str = ", "
    barred: str = ""
    ordered: bool = False


def json_notation(closing: str) -> Notation:
    """JSON between tags: no string holds the `closing` one, so that the text ends there."""
    common = '"\\<' + CONTROLS
    rules = {
        "string": r'"\"" plain* ("<" tag1)* "\""',
        "key": "string",
        "plain": f"{excluding(common)} | escape",
        "escape": r'"\\" (["\\/bfnrt] | "u" code)',
        # No half of a pair.
        "code": (
            "[0-9a-cefA-CEF] hex hex hex"
            r' | [dD] ([0-7] hex hex | [89abAB] hex hex "\\u" [dD] [c-fC-F] hex hex)'
        ),
        "hex": "[0-9a-fA-F]",
    }
    for at in range(1, len(closing)):
        other = f'"" | ({excluding(common + closing[at])} | escape) plain*'
        more = at < len(closing) - 1
        rules[f"tag{at}"] = f"{other} | {literal(closing[at])} tag{at + 1}" if more else other

    def text(value: str) -> str:
        written = json.dumps(value, ensure_ascii=False)
        return literal(written.replace("<", r"\u003c") if closing in written else written)

    return Notation(rules, text, text)


def python_notation(barred: str = "") -> Notation:
    """Python, with quotation marks of either kind."""
    rules = {
        "string": r'"\"" double* "\"" | "' + "'" + r'" single* "' + "'" + '"',
        "key": "string",
        "double": f"{excluding(chr(34) + chr(92) + barred)} | escape",
        "single": f"{excluding(chr(39) + chr(92) + barred)} | escape",
        # No half of a pair of UTF-16, which is no character.
        "escape": (
            rf'"\\" ({excluding("uU" + barred)} | "u" ([0-9a-cefA-CEF] | [dD] [0-7])'
            ' | "U00" ("0" [1-9a-fA-F] | "10"))'
        ),
    }

    def text(value: str) -> str:
        written = json.dumps(value, ensure_ascii=False)
        for char in barred:
            written = written.replace(char, f"\\u{ord(char):04x}")
        if "\\" in written or "'" in written:
            return literal(written)
        return any_of([literal(written), literal(f"'{written[1:-1]}'")])

    return Notation(rules, text, text, words=PYTHON_WORDS, barred=barred)


def quoting_notation(quote: str, bare_key: Callable[[str], bool]) -> Notation:
    """Strings without escapes between quotes of their own, keys without quotes where they can be.

    Args:
        quote: What stands on both sides.
        bare_key: Whether a key is read without it.
    """

    def text(value: str) -> str:
        if quote in value:
            raise UnwritableError
        return literal(f"{quote}{value}{quote}")

    def key(name: str) -> str:
        return literal(name) if bare_key(name) else text(name)

    rules = {"string": f"{literal(quote)} quoted", "quoted": until(quote), "key": KEYWORD}
    words = {**JSON_WORDS, "null": PYTHON_WORDS["null"]}
    return Notation(rules, text, key, quote, words, colon=":", comma=",", ordered=True)
