"""What is told of the tokens of a prompt: gathered while it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.engine.contract.generation import PromptScore
from ovchat_server.engine.scheduling.top_tokens import likeliest, log_total

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


class PromptScores:
    """The scores of one prompt; each row of logits says how likely the next token was."""

    def __init__(self, prompt: Sequence[int], top: int) -> None:
        """Nothing of `prompt` was read; tell `top` of the likeliest tokens with each."""
        self._prompt = prompt
        self._top = top
        self._scores: list[PromptScore] = []
        self._problem = ""

    @property
    def told(self) -> list[PromptScore]:
        """Those of the tokens so far, but for the first."""
        return self._scores

    def problem(self, end: int) -> str:
        """Why they are not known, of a prompt that was read up to `end`; "" where they are."""
        known = len(self._scores)
        if not self._problem and known != min(end, len(self._prompt) - 1):
            self.fail(f"{known} tokens were seen of {end}")
        return self._problem

    def fail(self, problem: str) -> None:
        """It cannot be told which logits are its own."""
        self._problem = self._problem or problem

    def look(self, position: int, row: NDArray[np.float32]) -> None:
        """See the logits behind the token at a position."""
        known = len(self._scores)
        if position > known:
            # A prefix cache had what was never seen here.
            self.fail(f"position {position} was read after {known} others")
        # Between two steps the cache may lose the beginning, which is read once more then.
        if self._problem or position < known or position + 1 == len(self._prompt):
            return
        token = self._prompt[position + 1]
        total = log_total(row)
        top = likeliest(row, self._top).tolist() if self._top else []
        self._scores.append(
            PromptScore(
                logprob=float(row[token]) - total,
                rank=int((row >= row[token]).sum()),
                alternatives=tuple((other, float(row[other]) - total) for other in top),
            )
        )
