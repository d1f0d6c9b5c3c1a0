"""Closes the reasoning of an answer that is longer than it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation import ReasoningBudget


class ReasoningLimit:
    """Follows the tokens of an answer, and says which one must come next, if one must."""

    def __init__(self, budget: ReasoningBudget) -> None:
        """Begin before the first token of the answer."""
        self._budget = budget
        self._inside = not budget.opening
        self._closed = False
        self._length = 0
        # The last tokens, as many as a mark has.
        self._tail: tuple[int, ...] = ()
        self._longest = max(len(budget.opening), len(budget.closing))

    def append(self, token: int) -> None:
        """Append a token to the answer."""
        if self._closed:
            return
        self._tail = (*self._tail, token)[-self._longest :]
        if not self._inside:
            self._inside = self._ends_with(self._budget.opening)
            return
        self._length += 1
        self._closed = self._ends_with(self._budget.closing)

    @property
    def forced(self) -> int | None:
        """The token that must come next: of the mark that closes the reasoning."""
        beyond = self._length - self._budget.tokens
        if not self._inside or self._closed or beyond < 0:
            return None
        # Where a model was just about to close it, a part of the mark stands there twice.
        return self._budget.closing[min(beyond, len(self._budget.closing) - 1)]

    def _ends_with(self, mark: tuple[int, ...]) -> bool:
        return self._tail[len(self._tail) - len(mark) :] == mark
