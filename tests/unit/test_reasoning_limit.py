"""Which token must come next where reasoning is longer than it may be."""

from __future__ import annotations

import numpy as np
import pytest

from ovchat_server.engine.contract.generation import ReasoningBudget, Sampling
from ovchat_server.engine.genai.logits_processors import LogitsProcessor
from ovchat_server.engine.genai.reasoning_limit import ReasoningLimit

OPEN, CLOSE = (90,), (91, 92)


def forced(tokens: list[int], budget: int, opening: tuple[int, ...] = OPEN) -> int | None:
    limit = ReasoningLimit(ReasoningBudget(budget, opening, CLOSE))
    for token in tokens:
        limit.append(token)
    return limit.forced


@pytest.mark.parametrize(
    ("tokens", "token"),
    [
        ([], None),
        ([90], None),
        ([90, 1, 2], None),
        # The budget is spent: the mark comes, token by token.
        ([90, 1, 2, 3], 91),
        ([90, 1, 2, 3, 91], 92),
        ([90, 1, 2, 3, 91, 92], None),
        ([90, 1, 2, 3, 91, 92, 5, 90, 1, 2, 3, 4], None),
        # The model closed it by itself.
        ([90, 1, 91, 92, 5, 6, 7, 8], None),
        # It does not reason.
        ([1, 2, 3, 4, 5], None),
        # White space before it counts for nothing.
        ([7, 90, 1, 2], None),
    ],
)
def test_reasoning_is_closed_at_its_budget(tokens: list[int], token: int | None) -> None:
    assert forced(tokens, 3) == token


def test_reasoning_that_the_prompt_opened_counts_from_the_first_token() -> None:
    assert forced([], 0, ()) == 91
    assert forced([1, 2], 3, ()) is None
    assert forced([1, 2, 3], 3, ()) == 91


def test_no_other_token_can_come_whatever_else_is_asked_for() -> None:
    sampling = Sampling(
        bias=((91, -100.0),), banned=((91,),), reasoning=ReasoningBudget(1, (), CLOSE)
    )
    processor = LogitsProcessor(sampling, (1,), (2,), 100)
    logits = np.zeros(100, np.float32)
    logits[5] = 50
    offsets = np.zeros(100, np.float32)
    processor.write_offsets(logits, offsets)
    assert int(np.argmax(logits + offsets)) == 91
    assert processor.bans(5)
    assert not processor.bans(91)
