"""The EBNF of numbers."""

from __future__ import annotations

from ovchat_server.grammar.ebnf import CHARACTERS, Alphabet
from ovchat_server.grammar.notation import verbatim
from ovchat_server.grammar.schema.numbers import DIGITS, number_node
from ovchat_server.grammar.schema.shapes import Number

FREE_INTEGER = f'("0" | "-"? [1-9] [0-9]{{0,{DIGITS - 1}}})'
FREE_NUMBER = (
    f'"-"? ("0" | [1-9] [0-9]{{0,{DIGITS - 1}}}) ("." [0-9]{{1,{DIGITS}}})?'
    " ([eE] [+-]? [0-9]{1,2})?"
)
NUMERALS = Alphabet(CHARACTERS, verbatim)


def number_text(shape: Number) -> str:
    """Return the EBNF of some numbers.

    Raises:
        SchemaError: There are none, or too many to say which.
    """
    if shape == Number():
        return FREE_NUMBER
    if shape == Number(whole=True):
        return FREE_INTEGER
    return NUMERALS.content(number_node(shape))
