"""Which token must come next where reasoning is longer than it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ovchat_server.engine.contract.generation import ReasoningBudget, Sampling
from ovchat_server.engine.genai.logits_processors import Length, LogitsProcessor
from ovchat_server.engine.genai.reasoning_limit import ReasoningLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

# The text of tokens: their letters, and two marks, of which each may be spelled as well.
OPEN, CLOSE = 1, 2
WORDS = {OPEN: "[x", CLOSE: "]y"}
CLOSING = (CLOSE, ord("!"))


def text(tokens: Sequence[int]) -> str:
    return "".join(WORDS.get(token) or chr(token) for token in tokens)


def forced(answer: str, budget: int, opening: str = "[x") -> int | None:
    limit = ReasoningLimit(ReasoningBudget(budget, opening, CLOSING), text)
    for character in answer:
        limit.append(ord(character))
    return limit.forced


@pytest.mark.parametrize(
    ("answer", "token"),
    [
        ("", None),
        ("\1", None),
        ("\1ab", None),
        # The budget is spent: the mark comes, token by token.
        ("\1abc", CLOSE),
        ("\1abc\2", ord("!")),
        ("\1abc\2!", None),
        ("\1abc\2!d\1abcd", None),
        # Marks that are spelled.
        ("[xabc", CLOSE),
        ("\1a]y!bcdef", None),
        # The model was about to close it.
        ("\1ab]", CLOSE),
        # It does not reason.
        ("abcde", None),
        ("a\1bcdef", None),
        ("[abcde", None),
        # White space before it counts for nothing.
        (" \n\1ab", None),
        (" \n\1abc", CLOSE),
    ],
)
def test_reasoning_is_closed_at_its_budget(answer: str, token: int | None) -> None:
    assert forced(answer, 3) == token


def test_reasoning_that_the_prompt_opened_counts_from_the_first_token() -> None:
    assert forced("", 0, "") == CLOSE
    assert forced("ab", 3, "") is None
    assert forced("abc", 3, "") == CLOSE


def test_no_other_token_can_come_whatever_else_is_asked_for() -> None:
    limit = ReasoningLimit(ReasoningBudget(1, "", CLOSING), text)
    sampling = Sampling(bias=((CLOSE, -100.0),), banned=((CLOSE,),))
    processor = LogitsProcessor(sampling, (5,), (6,), 100, Length(limit))
    logits = np.zeros(100, np.float32)
    logits[5] = 50
    offsets = np.zeros(100, np.float32)
    processor.write_offsets(logits, offsets)
    assert int(np.argmax(logits + offsets)) == CLOSE
    assert processor.bans(5)
    assert not processor.bans(CLOSE)
