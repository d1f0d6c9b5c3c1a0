"""Proposes what a draft model wrote, and learns how often that comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

# How likely a token is to come that was drafted, before any was, and the weight of one that was.
GUESS, WEIGHT = 0.7, 0.05
# The share of the way back to the guess for a token of which nothing was drafted: what was bad once
# is tried again some time.
FADING = 0.001
# Stands behind a draft that ended early: not even the draft model found a token likely.
UNSURE = -1


class DraftLuck:
    """How often the tokens of a draft model come, over all answers."""

    def __init__(self) -> None:
        """Begin with a guess."""
        self.chance = GUESS

    def note(self, *, came: bool) -> None:
        """Learn from a token that was to be drafted, behind others that came."""
        self.chance += WEIGHT * (came - self.chance)

    def fade(self) -> None:
        """Learn nothing from a token of which none was drafted."""
        self.chance += FADING * (GUESS - self.chance)


class DraftProposer:
    """Holds the text of a sequence, and what was drafted to follow it; see proposer.Proposer."""

    def __init__(
        self,
        tokens: Iterable[int],
        luck: DraftLuck,
        context_length: int,
        stops: Collection[int] = (),
        threshold: float = 0.0,
    ) -> None:
        """Begin with a text.

        Args:
            tokens: The text.
            luck: What is known of the model.
            context_length: The length of a text behind which it drafts nothing.
            stops: Tokens that end the answer.
            threshold: How likely the model must find each token, 0 to 1.
        """
        self.text = [*tokens]
        # As the prompt's: what is read of it is found by the same caller alone.
        self.cache_salt = 0
        self.stops = frozenset(stops)
        self.threshold = threshold
        # How many tokens of the text the model has read.
        self.read = 0
        self._luck = luck
        self._context_length = context_length
        self._drafted: list[int] = []

    def append(self, token: int) -> None:
        """See proposer.Proposer."""
        self.text.append(token)
        if not self._drafted:
            self._luck.fade()
            return
        expected, *rest = self._drafted
        self._luck.note(came=expected == token)
        self._drafted = rest if expected == token else []

    def chances(self, count: int) -> Sequence[float]:
        """See proposer.Proposer."""
        most = min(count, self._context_length - len(self.text))
        return [self._luck.chance**number for number in range(1, most + 1)]

    def proposal(self, count: int) -> Sequence[int]:
        """See proposer.Proposer."""
        return [token for token in self._drafted[:count] if token != UNSURE]

    def drafted(self, tokens: Sequence[int], *, unsure: bool = False) -> None:
        """Be told what the model wrote behind the text, and whether it was `unsure` of the rest."""
        if tokens or unsure:
            self.read = len(self.text)
        self._drafted = [*tokens, *([UNSURE] if unsure else [])]
