"""Bias, bans and penalties, as offsets to the logits of one sequence.

In vLLM's order (v1/sample/sampler.py): what is allowed, bad words, bias, then the penalties, of
which repetition_penalty multiplies. genai has none of the first, and its presence and frequency
penalties reward tokens with negative logits (logit_transformers.hpp, 2026.4.1).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ovchat_server.engine.contract.generation import Sampling
    from ovchat_server.engine.genai.logits_hook import Floats
    from ovchat_server.engine.genai.reasoning_limit import ReasoningLimit

# Lower than any logit with its bias, but finite: where a grammar leaves only banned tokens, the
# likeliest of them must still be chosen.
BANNED = np.float32(-1e5)


class Length(NamedTuple):
    """How long an answer or its reasoning may or must be.

    Attributes:
        reasoning: Follows the answer from its beginning.
        stops: The tokens that end the answer.
        least: How many tokens must come before one of those.
    """

    reasoning: ReasoningLimit | None = None
    stops: Collection[int] = ()
    least: int = 0


NO_LENGTH = Length()


class LogitsProcessor:
    """Computes the offsets for the next token from the tokens so far."""

    def __init__(
        self,
        sampling: Sampling,
        prompt: Sequence[int],
        answer: Sequence[int],
        size: int,
        length: Length = NO_LENGTH,
    ) -> None:
        """Begin after a prompt and the tokens of the answer that are known.

        Args:
            sampling: The parameters of the request.
            prompt: The caller's prompt.
            answer: Tokens of the answer so far; they count for penalties and banned sequences.
            size: Number of logits in a row.
            length: What is asked of the answer's.

        Raises:
            IndexError: A token is not in the vocabulary.
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
        self._reasoning, self._stops, self._least = length
        self._penalties = np.zeros(size, np.float32)
        # Tokens of prompt and answer; only repetition_penalty counts the prompt's.
        self._repeats = sampling.repetition_penalty != 1
        self._seen = dict.fromkeys(prompt if self._repeats else ())
        self._generated: set[int] = set()
        self._count = 0
        # The last tokens, as many as a banned sequence may begin with.
        self._tail: list[int] = []
        for token in answer:
            self.append(token)

    def append(self, token: int) -> None:
        """Append a token to the answer."""
        if token not in self._generated:
            self._generated.add(token)
            self._penalties[token] -= np.float32(self._sampling.presence_penalty)
        self._penalties[token] -= np.float32(self._sampling.frequency_penalty)
        self._count += 1
        self._seen[token] = None
        if self._reasoning:
            self._reasoning.append(token)
        if self._longest:
            self._tail = [*self._tail, token][-self._longest :]

    def behind(self, tokens: Iterable[int]) -> LogitsProcessor:
        """Return another one, behind further tokens."""
        other = copy.copy(self)
        vars(other).update(
            _reasoning=self._reasoning.copy() if self._reasoning else None,
            _penalties=self._penalties.copy(),
            _seen=self._seen.copy(),
            _generated=self._generated.copy(),
        )
        for token in tokens:
            other.append(token)
        return other

    def write_offsets(self, logits: Floats, offsets: Floats) -> None:
        """Write the offsets for the next token, given its row of logits."""
        forced = self._forced
        if forced is not None:
            offsets[:] = BANNED
            offsets[forced] = 0
            return
        offsets[:] = self._fixed
        for token in self._forbidden():
            offsets[token] = BANNED
        if self._repeats and self._seen:
            seen = np.fromiter(self._seen, np.int64, len(self._seen))
            biased = logits[seen] + offsets[seen]
            penalty = np.float32(self._sampling.repetition_penalty)
            offsets[seen] += np.where(biased > 0, biased / penalty, biased * penalty) - biased
        offsets += self._penalties

    def bans(self, token: int) -> bool:
        """Return whether a token must not be the next one, while another may."""
        forced = self._forced
        if forced is not None:
            return token != forced
        forbidden = self._forbidden()
        if self._fixed[token] >= BANNED / 2 and token not in forbidden:
            return False
        free = np.flatnonzero(self._fixed >= BANNED / 2)
        return bool(np.setdiff1d(free, forbidden).size)

    @property
    def _forced(self) -> int | None:
        return self._reasoning.forced if self._reasoning else None

    def _forbidden(self) -> list[int]:
        """Return the tokens that would complete a banned sequence, or the answer too early."""
        completing = [
            last
            for *before, last in self._banned
            if self._tail[len(self._tail) - len(before) :] == before
        ]
        if self._reasoning and self._reasoning.forbidden is not None:
            completing.append(self._reasoning.forbidden)
        return [*completing, *self._stops] if self._count < self._least else completing
