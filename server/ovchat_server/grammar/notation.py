"""How families of models write values: the strings, words and marks of JSON, Python, Gemma."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.grammar.ebnf import ASCII, CHARACTERS, Alphabet, character_class, literal, until
from ovchat_server.grammar.json_text import escaped, json_text
from ovchat_server.grammar.schema.code_points import (
    Ranges,
    characters,
    common,
    ranges,
    union,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LAYOUT = ranges("\t\n\r\r")
KEYWORD = "[a-zA-Z_] [a-zA-Z0-9_]*"
HEX = "[0-9a-fA-F]"
# No halves of characters: JSON has pairs of those for what it can hold as it is.
CODE_POINT = f'("u" ([0-9a-ce-fA-CE-F] {HEX} | [dD] [0-7]) {HEX} {HEX})'
JSON_WORDS = {"true": '"true"', "false": '"false"', "null": '"null"'}
# Models that write Python write JSON's words now and then, and parsers read both.
PYTHON_WORDS = {
    "true": '("True" | "true")',
    "false": '("False" | "false")',
    "null": '("None" | "null")',
}


class UnwritableError(ValueError):
    """What a notation cannot hold; the message completes "asks for ..."."""


@dataclass(frozen=True, slots=True)
class Notation:
    """How values are written, one inside another.

    Attributes:
        rules: EBNF: `string` is any string, `key` any key; and what they need.
        text: Writes one string; raises UnwritableError where it cannot.
        key: Writes one key, likewise.
        alphabet: What strings of a pattern or length consist of, between `quote`s.
        words: EBNF of true, false and null.
        colon: Stands between a key and its value.
        comma: Stands between two values.
        ordered: Properties come in the order of their names, not in the schema's.
    """

    rules: tuple[str, ...]
    text: Callable[[str], str]
    key: Callable[[str], str]
    alphabet: Alphabet
    quote: str = '"'
    words: Mapping[str, str] = field(default_factory=lambda: JSON_WORDS)
    colon: str = ": "
    comma: str = ", "
    ordered: bool = False


def excluding(text: str) -> Ranges:
    """Return all characters of answers but those of a text."""
    return without(CHARACTERS, characters(text))


def json_notation(closing: str = "") -> Notation:
    """Return JSON, of which no string holds the tag that closes what it stands in.

    Args:
        closing: That tag. "": it stands in none.
    """
    rules = ["key ::= string", r'string ::= "\"" string0']
    opens = closing[:1]
    if closing:
        rules.append(f"wide ::= {character_class(without(CHARACTERS, ASCII))}")
    # A loop that ends with the quotation mark is what the compiler is quick at. Its number is how
    # much of the tag has just been written.
    for at in range(max(1, len(closing))):
        on = closing[at : at + 1]
        plain = excluding('"\\' + opens + on)
        options = [
            r'"\""',
            f"{character_class(common(plain, ASCII) if closing else plain)} string0",
            rf'"\\" (["\\/bfnrt] | {CODE_POINT}) string0',
        ]
        if closing:
            options.append("wide string0")
        if on and at + 1 < len(closing):
            options.append(f"{literal(on)} string{at + 1}")
        if on != opens:
            options.append(f"{literal(opens)} string1")
        rules.append(f"string{at} ::= {' | '.join(options)}")

    def text(value: str) -> str:
        written = json_text(value)
        return literal(
            written.replace("<", r"\u003c") if closing and closing in written else written
        )

    alphabet = Alphabet(excluding('"\\' + opens), _escape)
    return Notation(tuple(rules), text, text, alphabet)


def python_notation(banned: str = "") -> Notation:
    """Return Python, with quotation marks of either kind.

    Args:
        banned: Characters that strings hold only escaped.
    """
    double, single, escape = (
        character_class(union(excluding(barred + banned), LAYOUT))
        for barred in ('"\\', "'\\", "uU")
    )
    rules = (
        r'''string ::= "\"" double* "\"" | "'" single* "'"''',
        "key ::= string",
        f"double ::= {double} | escape",
        f"single ::= {single} | escape",
        # No half of a pair of UTF-16, which is no character.
        r"""escape ::= "\\" (other | "u" ([0-9a-cefA-CEF] | [dD] [0-7]) | high)""",
        """high ::= "U00" ("0" [1-9a-fA-F] | "10")""",
        f"other ::= {escape}",
    )

    def text(value: str) -> str:
        written = json.dumps(value, ensure_ascii=False)
        for char in banned:
            written = written.replace(char, f"\\u{ord(char):04x}")
        if "\\" in written or "'" in written:
            return literal(written)
        single_quoted = literal(f"'{written[1:-1]}'")
        return f"({literal(written)} | {single_quoted})"

    alphabet = Alphabet(excluding('"\\' + banned), _escape)
    return Notation(rules, text, text, alphabet, words=PYTHON_WORDS)


def _escape(char: str) -> str:
    return escaped(char) if char < " " or char in '"\\' else f"\\u{ord(char):04x}"


def quoting_notation(quote: str, bare_key: Callable[[str], bool]) -> Notation:
    """Return strings without escapes between quotes of their own, and keys without, where they can.

    Args:
        quote: What stands on both sides.
        bare_key: Whether a key is read without it.
    """

    def text(value: str) -> str:
        if quote in value:
            raise UnwritableError(f"a text with {quote} in it")
        return literal(f"{quote}{value}{quote}")

    def key(name: str) -> str:
        return literal(name) if bare_key(name) else text(name)

    rules = (
        f"string ::= {literal(quote)} quoted",
        f"quoted ::= {until(quote)}",
        f"key ::= {KEYWORD}",
    )
    alphabet = Alphabet(CHARACTERS, verbatim, tuple(dict.fromkeys(quote[1:])))
    words = {**JSON_WORDS, "null": PYTHON_WORDS["null"]}
    return Notation(rules, text, key, alphabet, quote, words, colon=":", comma=",", ordered=True)


def verbatim(char: str) -> str | None:
    """Return a character of layout as it is; others that are not plain cannot be written."""
    return char if char in "\t\n\r" else None


JSON = json_notation()
