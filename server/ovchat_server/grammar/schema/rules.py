"""The rules of a grammar while it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.ebnf import Rule, quoted
from ovchat_server.grammar.schema.shapes import SchemaError

if TYPE_CHECKING:
    from ovchat_server.grammar.schema.ebnf import Alternative

MAX_RULES = 20_000
# Parts of a rule that may stand in another one's place.
MAX_INLINE = 50


@dataclass(frozen=True, slots=True)
class Member:
    """What may stand between brackets.

    Attributes:
        parts: Its text.
        needed: It must.
    """

    parts: Alternative
    needed: bool = False


class Rules:
    """Rules; the first is the root of the grammar."""

    def __init__(self) -> None:
        """Start with none."""
        self.rules: list[Rule] = []

    def new(self, alternatives: list[Alternative]) -> Rule:
        """Another one.

        Raises:
            SchemaError: There are too many.
        """
        if len(self.rules) >= MAX_RULES:
            raise SchemaError("is too large when it is written out")
        self.rules.append(Rule(len(self.rules), alternatives))
        return self.rules[-1]

    def picked(
        self,
        members: list[Member],
        fewest: int,
        most: int | None,
        closing: str,
        separator: str = ", ",
    ) -> Alternative:
        """Some of some members in their order, up to the closing bracket."""
        if most is not None and most >= len(members):
            most = None
        # Beyond that it makes no difference how many there are.
        counted = max(1, fewest if most is None else most)
        if fewest > len(members) or (most is not None and fewest > most):
            return (self.new([]),)
        # From the last: what follows where so many were picked before.
        following: list[Alternative] = [
            (quoted(closing),) if count >= fewest else (self.new([]),)
            for count in range(counted + 1)
        ]
        for member in reversed(members):
            before: list[Alternative] = []
            for count in range(counted + 1):
                options = [] if member.needed else [following[count]]
                if most is None or count < most:
                    after = following[min(count + 1, counted)]
                    options.append((quoted(separator) if count else "", *member.parts, *after))
                before.append(self.joined(options))
            following = before
        return following[0]

    def joined(self, options: list[Alternative]) -> Alternative:
        """One of some alternatives, as part of another one."""
        short = len(options) == 1 and len(options[0]) <= MAX_INLINE
        return options[0] if short else (self.new(options),)
