"""Closes the reasoning of an answer that is longer than it may be."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.engine.contract.generation import ReasoningBudget


class ReasoningLimit:
    """Follows the tokens of an answer, and says which must come next, or must not.

    Marks are looked for in the text: a model may spell them with tokens of other words.
    """

    def __init__(self, budget: ReasoningBudget, text: Callable[[Sequence[int]], str]) -> None:
        """Begin before the first token of the answer; `text` returns that of tokens."""
        self._budget = budget
        self._text = text
        self._inside = not budget.opening
        # There is no more reasoning to come.
        self._over = False
        self._length = 0
        # The last tokens since a mark, as many as the next one may have; all of them before
        # reasoning that is only at the beginning.
        self._tokens: list[int] = []
        self._closing = text(budget.closing).strip()

    def copy(self) -> ReasoningLimit:
        """Return another one, as far as this one is."""
        other = copy.copy(self)
        vars(other).update(_tokens=self._tokens.copy())
        return other

    def append(self, token: int) -> None:
        """Append a token to the answer."""
        if self._over:
            return
        self._tokens.append(token)
        if self._inside:
            self._length += 1
            if self._ends_with(self._closing):
                self._turn()
                self._over = not self._budget.reopening
        elif self._budget.reopening:
            if self._ends_with(self._budget.opening):
                self._turn()
        else:
            self._begin()

    @property
    def forced(self) -> int | None:
        """The token that must come next: of the mark that closes the reasoning."""
        if not self._inside or self._over or not self._spent:
            return None
        closing = self._budget.closing
        # The model may be about to close it.
        begun = next(
            count for count in reversed(range(len(closing))) if self._follows(closing[:count])
        )
        return closing[begun]

    @property
    def forbidden(self) -> int | None:
        """The token that must not come next: it would open the reasoning once more."""
        if self._inside or not (self._budget.reopening and self._spent):
            return None
        *before, last = self._budget.reopening
        return last if self._follows(before) else None

    @property
    def _spent(self) -> bool:
        return self._length >= self._budget.tokens

    def _begin(self) -> None:
        """Look for the mark at the beginning of the answer."""
        begun, opening = self._text(self._tokens).lstrip(), self._budget.opening
        if not begun:
            # White space without end must not take longer with each token.
            self._tokens.clear()
        elif begun.startswith(opening):
            self._turn()
        else:
            self._over = not opening.startswith(begun)

    def _turn(self) -> None:
        self._inside = not self._inside
        self._tokens.clear()

    def _ends_with(self, mark: str) -> bool:
        """Return whether the last token completed a mark; a token has at least a byte of it."""
        del self._tokens[: -len(mark.encode())]
        return mark in self._text(self._tokens)

    def _follows(self, tokens: Sequence[int]) -> bool:
        """Return whether these were the last tokens."""
        return self._tokens[len(self._tokens) - len(tokens) :] == [*tokens]
