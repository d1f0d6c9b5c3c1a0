"""Proposed tokens are read at the end of a prompt, and kept as far as they are those to come."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ovchat_server.engine.genai.choosing import choose
from ovchat_server.engine.scheduling.steps import Alternatives, Output
from ovchat_server.engine.scheduling.top_tokens import log_total, top_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.genai.grammar_followers import GrammarFollower
    from ovchat_server.engine.genai.logits_hook import Floats
    from ovchat_server.engine.genai.logits_processors import LogitsProcessor


class _Choice(NamedTuple):
    token: int
    logprob: float
    alternatives: Alternatives


class ProposalCheck:
    """Chooses tokens from the rows before the proposed ones, up to the first that differs.

    A token is chosen as without proposals, and independently of them. So the answer follows the
    model's own distribution (speculative sampling, for proposals that are certain).
    """

    def __init__(
        self,
        request: GenerationRequest,
        proposed: Sequence[int],
        length: int,
        processor: LogitsProcessor | None,
        follower: GrammarFollower | None = None,
    ) -> None:
        """Begin before the proposed tokens.

        Args:
            request: Says how to choose, and what to report.
            proposed: The tokens, at least one.
            length: The number of tokens of prompt and answer before them.
            processor: Changes the logits of the first one.
            follower: Chooses by the answer's grammar; None: it has none.
        """
        self.proposed = proposed
        self._request = request
        self._length = length
        self._processor = processor
        self._follower = follower
        self._chosen: list[_Choice] = []
        self._rows = 0

    @property
    def whole(self) -> bool:
        """Whether all of the proposed tokens came, so that another one is chosen behind them."""
        return self.accepted == len(self.proposed)

    @property
    def accepted(self) -> int:
        """How many of the proposed tokens came."""
        pairs = zip(self._chosen, self.proposed, strict=False)
        return sum(item.token == token for item, token in pairs)

    def observe(self, number: int, row: Floats) -> None:
        """Choose a token from the row before this proposed one. They come in order."""
        self._rows += 1
        if self.accepted < number:
            return
        changed = row
        if processor := self._processor:
            if number:
                self._processor = processor = processor.behind([self.proposed[number - 1]])
            changed = np.zeros_like(row)
            processor.write_offsets(row, changed)
            changed += row
        token = self._choose(changed, self._length + number)
        top, logprob, alternatives = self._request.top_logprobs, 0.0, Alternatives()
        if self._request.logprobs or top:
            total = log_total(row)
            logprob = float(row[token]) - total
            alternatives = top_tokens(row, total, top) if top else []
        self._chosen.append(_Choice(token, logprob, alternatives))

    def report(self, last: Output) -> Output:
        """Return what came of a step.

        Nothing did if rows are missing: the prefix cache had proposed tokens, so that they were not
        read.

        Args:
            last: The token that genai chose behind all that was proposed.
        """
        if self._rows != len(self.proposed):
            return Output([], [], rejected=len(self.proposed))
        accepted, chosen, whole = self.accepted, self._chosen, self.whole
        return Output(
            [item.token for item in chosen] + (last.tokens if whole else []),
            [item.logprob for item in chosen] + (last.logprobs if whole else []),
            last.finish if whole else None,
            [item.alternatives for item in chosen if item.alternatives]
            + (last.alternatives if whole else []),
            accepted=accepted,
            rejected=len(self.proposed) - accepted,
        )

    def _choose(self, logits: Floats, position: int) -> int:
        if self._follower:
            return self._follower.choose(logits)
        return choose(logits, self._request.sampling, position)
