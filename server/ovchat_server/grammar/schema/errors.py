"""Schemas that cannot be enforced."""

from __future__ import annotations

from ovchat_server.domain.errors import shortened


class SchemaError(ValueError):
    """A schema that cannot be enforced.

    As text it completes "<field> ...".

    Attributes:
        complaint: What is wrong.
        place: A JSON pointer to what it is wrong with; None where that is not known.
    """

    def __init__(self, complaint: str, place: str | None = None) -> None:
        """Make the error; see its attributes."""
        super().__init__(complaint, place)
        self.complaint = complaint
        self.place = place

    def __str__(self) -> str:
        """Write it with its place."""
        if self.place is None:
            return self.complaint
        return f"{self.complaint} at {shortened(self.place or 'the top')}, which cannot be enforced"


class TooLargeError(SchemaError):
    """A schema that takes too long to read or to write, as a whole, whatever is left out of it."""
