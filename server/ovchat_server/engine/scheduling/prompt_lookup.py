"""Prompt lookup: what followed the last tokens where they stood before is likely to come again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.scheduling.proposer import Proposer

# How likely a token is the one that was looked up, before any came: the first one, and one after
# others that were right. Then what came counts, the last time for so much.
FIRST, NEXT, WEIGHT = 0.5, 0.8, 0.1
# Stands behind a prediction in place of a token: nothing is proposed from there on.
END = -1


class PromptLookup:
    """Finds what may follow a text in the text itself, and learns how often that comes.

    What is found counts whether it is proposed or not: so a text in which nothing repeats, or
    differently each time, is soon known to be one.
    """

    def __init__(
        self,
        tokens: Iterable[int],
        size: int,
        stops: Collection[int] = (),
        prediction: Sequence[int] = (),
    ) -> None:
        """Begin with a text.

        Args:
            tokens: The text.
            size: How many of the last tokens are looked up.
            stops: Tokens that are not proposed, nor what follows them.
            prediction: The tokens that are expected to follow; none if nothing is known.
        """
        self._size = size
        self._stops = frozenset((*stops, END))
        self._text: list[int] = []
        # What stands behind each sequence of tokens, where that came last.
        self._behind: dict[tuple[int, ...], int] = {}
        # Where the token stands that is expected next; 0: none is.
        self._expected = 0
        # Whether the last one came as expected.
        self._right = False
        self._first, self._next = FIRST, NEXT
        for token in tokens:
            self._append(token)
        if prediction:
            self._predict(prediction)

    def append(self, token: int) -> None:
        """See proposer.Proposer."""
        expected = self._expected
        self._append(token)
        if not expected:
            self._right = False
            return
        came = self._text[expected] == token
        if self._right:
            self._next += WEIGHT * (came - self._next)
        else:
            self._first += WEIGHT * (came - self._first)
        self._right = came
        if came:
            # A longer match says more than the last place where a shorter one is.
            self._expected = expected + 1

    def proposal(self, count: int) -> Sequence[int]:
        """See proposer.Proposer."""
        if not self._expected:
            return ()
        tokens = self._text[self._expected : self._expected + count]
        stops = (place for place, token in enumerate(tokens) if token in self._stops)
        return tokens[: next(stops, len(tokens))]

    def chances(self, count: int) -> Sequence[float]:
        """See proposer.Proposer."""
        first = self._next if self._right else self._first
        return [first * self._next**number for number in range(len(self.proposal(count)))]

    def _predict(self, prediction: Sequence[int]) -> None:
        """Have a prediction found behind the text, whose last tokens stand behind it again."""
        behind = len(self._text)
        for token in (*prediction, END, *self._text[-self._size :]):
            self._append(token)
        if behind < self._size:
            # It is not found.
            self._expected = behind

    def _append(self, token: int) -> None:
        self._text.append(token)
        if len(self._text) < self._size:
            return
        last = tuple(self._text[-self._size :])
        self._expected = self._behind.get(last, 0)
        self._behind[last] = len(self._text)


class PromptLookups:
    """See proposer.Proposers: what prompt lookup proposes is found when tokens come."""

    def proposer(self, request: GenerationRequest, stops: Collection[int]) -> Proposer:
        """See proposer.Proposers."""
        size = request.speculation.max_ngram_size
        return PromptLookup(request.prompt.tokens, size, stops, request.prediction)

    def seconds(self, sequences: int, count: int) -> float:
        """See proposer.Proposers."""
        del sequences, count
        return 0.0

    def find(self, chosen: Iterable[tuple[Proposer, int]]) -> None:
        """See proposer.Proposers."""
