"""The log probabilities of a prompt's tokens, gathered while the prompt is prefilled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.engine.contract.generation import PromptScore
from ovchat_server.engine.scheduling.top_tokens import log_total, top_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


class PromptScores:
    """The scores of one prompt: each row of logits says how likely the next token was."""

    def __init__(self, prompt: Sequence[int], top: int) -> None:
        """Begin before the first token of `prompt`; report `top` alternatives with each token."""
        self._prompt = prompt
        self._top = top
        self._scores: list[PromptScore] = []
        self._problem = ""

    @property
    def gathered(self) -> list[PromptScore]:
        """The scores of the tokens so far, without the first, which has none."""
        return self._scores

    def problem(self, end: int) -> str:
        """Return why scores are missing of a prompt read up to `end`; "" if none are."""
        known = len(self._scores)
        if not self._problem and known != min(end, len(self._prompt) - 1):
            self.fail(f"{known} tokens were seen of {end}")
        return self._problem

    def fail(self, problem: str) -> None:
        """Note why it is not known which logits are its own."""
        self._problem = self._problem or problem

    def observe(self, position: int, row: NDArray[np.float32]) -> None:
        """Score the token after a position by the logits of that position."""
        known = len(self._scores)
        if position > known:
            # The prefix cache had tokens whose logits were never seen.
            self.fail(f"position {position} was read after {known} others")
        # The cache may lose the beginning between two steps; then it is read once more.
        if self._problem or position < known or position + 1 == len(self._prompt):
            return
        token = self._prompt[position + 1]
        total = log_total(row)
        self._scores.append(
            PromptScore(
                logprob=float(row[token]) - total,
                rank=int((row >= row[token]).sum()),
                alternatives=tuple(top_tokens(row, total, self._top)) if self._top else (),
            )
        )
