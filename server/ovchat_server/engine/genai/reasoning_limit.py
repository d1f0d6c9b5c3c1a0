"""Closes the reasoning of an answer that is longer than it may be."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.engine.contract.generation import ReasoningBudget


class ReasoningLimit:
    """Follows the tokens of an answer, and says which one must come next, if one must.

    Marks are looked for in the text: a model may spell them with tokens of other words.
    """

    def __init__(self, budget: ReasoningBudget, text: Callable[[Sequence[int]], str]) -> None:
        """Begin before the first token of the answer; `text` returns that of tokens."""
        self._budget = budget
        self._text = text
        self._inside = not budget.opening
        # It was closed, or the answer began without it.
        self._over = False
        self._length = 0
        # All tokens before the reasoning; inside of it the last ones, as many as its end may have.
        self._tokens: list[int] = []
        self._closing = text(budget.closing)

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
            del self._tokens[: -len(self._closing)]
            self._over = self._closing in self._text(self._tokens)
            return
        begun, opening = self._text(self._tokens).lstrip(), self._budget.opening
        if begun.startswith(opening):
            self._inside = True
            self._tokens.clear()
        else:
            self._over = not opening.startswith(begun)

    @property
    def forced(self) -> int | None:
        """The token that must come next: of the mark that closes the reasoning."""
        beyond = self._length - self._budget.tokens
        if not self._inside or self._over or beyond < 0:
            return None
        # Where a model was just about to close it, a part of the mark stands there twice.
        return self._budget.closing[min(beyond, len(self._budget.closing) - 1)]
