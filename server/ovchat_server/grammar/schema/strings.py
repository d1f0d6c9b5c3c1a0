"""Strings of a length, a pattern or a format."""

from __future__ import annotations

from ovchat_server.grammar.schema.ebnf import PLAIN, string_content
from ovchat_server.grammar.schema.formats import fitted_format
from ovchat_server.grammar.schema.nodes import Chars, Node, Repeat, fitted
from ovchat_server.grammar.schema.patterns import read_pattern
from ovchat_server.grammar.schema.shapes import SchemaError, String

MARK = r'"\""'
HEX = "[0-9a-fA-F]"
# What a string that may be anything consists of: characters, escapes, and such of code points,
# but for halves of characters, which no text holds.
PIECES = (
    string_content(Chars(PLAIN)),
    r'"\\" ["\\/bfnrt]',
    rf'"\\u" ([0-9a-ce-fA-CE-F] {HEX} | [dD] [0-7]) {HEX} {HEX}',
)


def string_text(shape: String) -> str:
    """The EBNF of some strings, of those that may be anything without escapes.

    Raises:
        SchemaError: They cannot be told.
        PatternError: Nor can those of a pattern.
    """
    if len(shape.patterns) + len(shape.formats) > 1:
        raise SchemaError("uses several of pattern and format together")
    node: Node = Repeat(Chars(PLAIN), shape.shortest, shape.longest)
    for pattern in shape.patterns:
        node = fitted(read_pattern(pattern), shape.shortest, shape.longest)
    for name in shape.formats:
        node = fitted_format(name, shape.shortest, shape.longest)
    return f"{MARK} {string_content(node)} {MARK}"
