"""What is added to the logits of one sequence: bias, bans and penalties.

In vLLM's order (v1/sample/sampler.py): what is allowed, bad words, bias, then the penalties, of
which repetition_penalty multiplies. genai has none of the first, and its presence and frequency
penalties reward tokens with negative logits (logit_transformers.hpp, 2026.4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation import Sampling
    from ovchat_server.engine.genai.logits_hook import Floats

# Less likely than anything, whatever its logit and bias, but not infinitely: where a grammar leaves
# nothing else, the likeliest of its tokens must still be told from the others.
BANNED = np.float32(-1e5)


class LogitRules:
    """Knows what the answer has so far, and so what its next token may be."""

    def __init__(
        self, sampling: Sampling, prompt: Sequence[int], answer: Sequence[int], size: int
    ) -> None:
        """Begin behind a prompt, and what there is of the answer.

        Args:
            sampling: What was asked for.
            prompt: Of the caller.
            answer: Tokens of the answer; they count for penalties and banned sequences.
            size: Logits in a row.

        Raises:
            IndexError: A token is none of the vocabulary.
        """
        self._sampling = sampling
        self._banned = [item for item in sampling.banned if len(item) > 1]
        self._longest = max(map(len, self._banned), default=1) - 1
        self._fixed = np.zeros(size, np.float32)
        if sampling.allowed:
            self._fixed[:] = BANNED
            self._fixed[[*sampling.allowed]] = 0
        for token, value in sampling.bias:
            self._fixed[token] += np.float32(value)
        for sequence in sampling.banned:
            if len(sequence) == 1:
                self._fixed[sequence[0]] = BANNED
        self._penalties = np.zeros(size, np.float32)
        # Of prompt and answer; only repetition_penalty asks for the prompt.
        self._repeats = sampling.repetition_penalty != 1
        self._seen = dict.fromkeys(prompt if self._repeats else ())
        self._said: set[int] = set()
        # As much as the banned sequences look back on.
        self._tail: list[int] = []
        for token in answer:
            self.note(token)

    def note(self, token: int) -> None:
        """A token more is in the answer."""
        if token not in self._said:
            self._said.add(token)
            self._penalties[token] -= np.float32(self._sampling.presence_penalty)
        self._penalties[token] -= np.float32(self._sampling.frequency_penalty)
        self._seen[token] = None
        if self._longest:
            self._tail = [*self._tail, token][-self._longest :]

    def write(self, logits: Floats, added: Floats) -> None:
        """What to add to a row of logits for the next token."""
        added[:] = self._fixed
        for token in self._forbidden():
            added[token] = BANNED
        if self._repeats and self._seen:
            seen = np.fromiter(self._seen, np.int64, len(self._seen))
            biased = logits[seen] + added[seen]
            penalty = np.float32(self._sampling.repetition_penalty)
            added[seen] += np.where(biased > 0, biased / penalty, biased * penalty) - biased
        added += self._penalties

    def bans(self, token: int) -> bool:
        """Whether it must not be the next, though another may."""
        forbidden = self._forbidden()
        if self._fixed[token] >= BANNED / 2 and token not in forbidden:
            return False
        free = np.flatnonzero(self._fixed >= BANNED / 2)
        return bool(np.setdiff1d(free, forbidden).size)

    def _forbidden(self) -> list[int]:
        """What would complete a banned sequence."""
        return [
            last
            for *before, last in self._banned
            if self._tail[len(self._tail) - len(before) :] == before
        ]
