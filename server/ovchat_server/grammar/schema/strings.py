"""Strings of a length, a pattern or a format, as trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.code_points import EVERY
from ovchat_server.grammar.schema.formats import fitted_format
from ovchat_server.grammar.schema.nodes import Chars, Node, Repeat, fitted
from ovchat_server.grammar.schema.patterns import read_pattern
from ovchat_server.grammar.schema.shapes import SchemaError

if TYPE_CHECKING:
    from ovchat_server.grammar.schema.shapes import String


def string_node(shape: String) -> Node:
    """Return the texts of some strings.

    Raises:
        SchemaError: They cannot be told.
        PatternError: Nor can those of a pattern.
    """
    if len(shape.patterns) + len(shape.formats) > 1:
        raise SchemaError("uses several of pattern and format together")
    for pattern in shape.patterns:
        return fitted(read_pattern(pattern), shape.shortest, shape.longest)
    for name in shape.formats:
        return fitted_format(name, shape.shortest, shape.longest)
    return Repeat(Chars(EVERY), shape.shortest, shape.longest)
