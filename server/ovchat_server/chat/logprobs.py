"""Log probabilities, told together with the text of their tokens."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.api.completion import TokenLogprob

# OpenAI's floor; the logarithm of 0 has no JSON.
LEAST_LOGPROB = -9999.0


class LogprobQueue:
    """Holds the log probabilities of tokens whose text is held back.

    Of tokens that a stop string cut off, none is told: they are no part of the answer.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._held: deque[TokenLogprob] = deque()

    def put(self, item: TokenLogprob) -> None:
        """Hold one, in the order of the tokens."""
        self._held.append(item)

    def take(self, passed: int, *, rest: bool) -> tuple[TokenLogprob, ...]:
        """Those of the tokens that begin before `passed` characters; with `rest` all."""
        taken = []
        while self._held and (rest or self._held[0].offset < passed):
            taken.append(self._held.popleft())
        return tuple(taken)
