"""What is too much, whatever is left out of it."""

from __future__ import annotations

from ovchat_server.grammar.schema.shapes import SchemaError


class TooLargeError(SchemaError):
    """A schema that takes too long to read or to write, as a whole."""
