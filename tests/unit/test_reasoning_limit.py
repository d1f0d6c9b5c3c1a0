"""Which token must come next where reasoning is longer than it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ovchat_server.engine.contract.generation import (
    GenerationRequest,
    ReasoningBudget,
    Sampling,
)
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.genai.logits_processors import Length, LogitsProcessor
from ovchat_server.engine.genai.reasoning_limit import ReasoningLimit
from ovchat_server.engine.genai.sequence_logits import SequenceLogits, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

# The text of tokens: their letters, and two marks, of which each may be spelled as well.
OPEN, CLOSE = 1, 2
WORDS = {OPEN: "[x", CLOSE: "]y"}
CLOSING = (CLOSE, ord("!"))
# Of reasoning that may come several times; what differs from it begins with the same.
REOPENING = (OPEN, ord("?"))


def text(tokens: Sequence[int]) -> str:
    return "".join(WORDS.get(token) or chr(token) for token in tokens)


def limited(answer: str, budget: ReasoningBudget) -> ReasoningLimit:
    limit = ReasoningLimit(budget, text)
    for character in answer:
        limit.append(ord(character))
    return limit


def forced(answer: str, budget: int, opening: str = "[x") -> int | None:
    return limited(answer, ReasoningBudget(budget, opening, CLOSING)).forced


@pytest.mark.parametrize(
    ("answer", "token"),
    [
        ("", None),
        ("\1", None),
        ("\1ab", None),
        # The budget is spent: the mark comes, token by token.
        ("\1abc", CLOSE),
        (" \n \1abc", CLOSE),
        ("\1abc\2", ord("!")),
        ("\1abc\2!", None),
        ("\1abc\2!d\1abcd", None),
        # Marks that are spelled.
        ("[xabc", CLOSE),
        ("\1a]y!bcdef", None),
        # The model was about to close it.
        ("\1ab]", CLOSE),
        ("\1ab\2", ord("!")),
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


@pytest.mark.parametrize(
    ("answer", "token", "barred"),
    [
        ("", None, None),
        # Each time counts, and what closes it.
        ("\1?a\2!said\1?", None, None),
        ("\1?ab\2!said\1?a", CLOSE, None),
        ("\1?abcde", CLOSE, None),
        ("\1?abcde\2", ord("!"), None),
        # Then it is not opened once more, but something else is.
        ("\1?abcde\2!", None, None),
        ("\1?abcde\2!said\1", None, ord("?")),
        ("\1?abcde\2!said\1&\1", None, ord("?")),
        # It was all the same, as marks may be spelled.
        ("\1?abcde\2!said[x?", CLOSE, None),
    ],
)
def test_reasoning_that_comes_again_has_one_budget(
    answer: str, token: int | None, barred: int | None
) -> None:
    limit = limited(answer, ReasoningBudget(5, "[x?", CLOSING, REOPENING))
    assert (limit.forced, limit.forbidden) == (token, barred)


def test_without_a_budget_reasoning_that_comes_again_does_not_come_at_all() -> None:
    limit = limited("\1", ReasoningBudget(0, "[x?", CLOSING, REOPENING))
    processor = LogitsProcessor(Sampling(), (5,), (), 100, Length(limit))
    offsets = np.zeros(100, np.float32)
    processor.write_offsets(offsets.copy(), offsets)
    assert np.flatnonzero(offsets).tolist() == [ord("?")]


@pytest.mark.parametrize("known", [0, 1, 2, 3, 4])
def test_a_sequence_that_is_resumed_has_what_is_left_of_its_budget(known: int) -> None:
    answer = [OPEN, *b"abc"]
    sampling = Sampling(reasoning=ReasoningBudget(3, "[x", CLOSING))
    rest = GenerationRequest(Prompt((5,)), 20, sampling).followed_by(answer[:known])
    processor = SequenceLogits(rest, known, Vocabulary(100, text)).processor
    assert processor is not None
    for token in answer[known:]:
        assert not processor.bans(token)
        processor.append(token)
    assert processor.bans(ord("d"))
    assert not processor.bans(CLOSE)


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
