"""The rules of a grammar while it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.grammar.ebnf import Rule
from ovchat_server.grammar.schema.shapes import SchemaError

if TYPE_CHECKING:
    from ovchat_server.grammar.ebnf import Alternative

MAX_RULES = 20_000
# Parts of a rule that may stand in another one's place.
MAX_INLINE = 50


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object or list that may stand between brackets.

    Attributes:
        parts: Its text.
        needed: It cannot be left out.
    """

    parts: Alternative
    needed: bool = False


class Rules:
    """Rules; the first is the root of the grammar."""

    def __init__(self) -> None:
        """Start with none."""
        self.rules: list[Rule] = []

    def new(self, alternatives: list[Alternative]) -> Rule:
        """Add a rule.

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
        separator: str,
    ) -> Alternative:
        """Return some of some members in their order, and what closes them.

        Args:
            members: What there is to choose from.
            fewest: How many to choose, at least.
            most: At most; None: all of them.
            closing: EBNF of what stands behind them.
            separator: EBNF of what stands between two; "": nothing does.
        """
        if most is not None and most >= len(members):
            most = None
        # Beyond that it makes no difference how many there are.
        counted = max(1 if separator else 0, fewest if most is None else most)
        if fewest > len(members) or (most is not None and fewest > most):
            return (self.new([]),)
        # From the last: what follows where so many were picked before.
        following: list[Alternative] = [
            (closing,) if count >= fewest else (self.new([]),) for count in range(counted + 1)
        ]
        for member in reversed(members):
            before: list[Alternative] = []
            for count in range(counted + 1):
                options = [] if member.needed else [following[count]]
                if most is None or count < most:
                    after = following[min(count + 1, counted)]
                    options.append((separator if count else "", *member.parts, *after))
                before.append(self.joined(options))
            following = before
        return following[0]

    def joined(self, options: list[Alternative]) -> Alternative:
        """Return one of some alternatives, as a part of another one."""
        short = len(options) == 1 and len(options[0]) <= MAX_INLINE
        return options[0] if short else (self.new(options),)
