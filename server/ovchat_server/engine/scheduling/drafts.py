"""Tokens that a draft model proposes, for all sequences that are to have some at once."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Protocol

from ovchat_server.engine.scheduling.draft_cost import DraftCost
from ovchat_server.engine.scheduling.draft_proposer import DraftLuck, DraftProposer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.scheduling.proposer import Proposer

# Streams must go on: a draft reads at most FEW new tokens of a text. Of one of which more is new a
# SLICE is read before each step, and nothing is drafted.
FEW, SLICE = 64, 256


class DraftModel(Protocol):
    """A model that drafts."""

    def read(self, tokens: Sequence[int], cache_salt: int) -> None:
        """Read a text, of which little is new, into the prefix cache."""
        ...

    def draft(self, texts: Sequence[tuple[DraftProposer, int]]) -> Sequence[float]:
        """Draft up to so many tokens for each of these texts, and tell them.

        Returns:
            The seconds that each step took.
        """
        ...


class Drafts:
    """See proposer.Proposers: a model drafts for all chosen sequences together."""

    def __init__(self, model: DraftModel, context_length: int) -> None:
        """Propose what a model drafts, for texts of as many tokens as it was made for."""
        self._model = model
        self._context_length = context_length
        self._luck = DraftLuck()
        self._cost = DraftCost()
        self._failed = False
        # The first time it prepares what later ones use.
        for _ in range(2):
            self._cost = DraftCost()
            self._draft([(DraftProposer((0,), self._luck, context_length), 4)])

    def proposer(self, request: GenerationRequest, stops: Collection[int]) -> Proposer:
        """See proposer.Proposers."""
        threshold = request.speculation.assistant_confidence_threshold
        made = DraftProposer(
            request.prompt.tokens, self._luck, self._context_length, stops, threshold
        )
        made.cache_salt = request.prompt.cache_salt
        return made

    def seconds(self, sequences: int, count: int) -> float:
        """See proposer.Proposers."""
        return math.inf if self._failed else self._cost.seconds(sequences, count)

    def find(self, chosen: Iterable[tuple[Proposer, int]]) -> None:
        """See proposer.Proposers."""
        mine = [(item, count) for item, count in chosen if isinstance(item, DraftProposer)]
        if self._failed or not mine:
            return
        behind = [item for item, _ in mine if len(item.text) - item.read > FEW]
        ready = [(item, count) for item, count in mine if item not in behind]
        try:
            if behind:
                self._read(behind[0])
            if ready:
                self._draft(ready)
        except Exception as error:  # noqa: BLE001  answers go on without
            self._failed = True
            sys.stderr.write(f"nothing is drafted any more: {error}\n")

    def _read(self, item: DraftProposer) -> None:
        end = min(item.read + SLICE, len(item.text))
        self._model.read(item.text[:end], item.cache_salt)
        item.read = end

    def _draft(self, texts: Sequence[tuple[DraftProposer, int]]) -> None:
        self._cost.note(len(texts), self._model.draft(texts))
