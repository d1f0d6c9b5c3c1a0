"""What is added to logits, against vLLM's rules written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.engine.contract.generation import Sampling
from ovchat_server.engine.genai.logits_processors import BANNED, LogitsProcessor
from tests.reference_rules import ruled

SIZE = 40
TOKENS = st.integers(0, SIZE - 1)
FEW = st.integers(0, 4)
PENALTY = st.sampled_from([-2.0, -0.5, 0.0, 0.0, 0.7, 2.0])
SAMPLINGS = st.builds(
    Sampling,
    repetition_penalty=st.sampled_from([0.5, 0.9, 1.0, 1.0, 1.3, 2.0]),
    presence_penalty=PENALTY,
    frequency_penalty=PENALTY,
    bias=st.dictionaries(TOKENS, st.floats(-100, 100, width=32), max_size=5).map(
        lambda values: tuple(values.items())
    ),
    allowed=st.lists(TOKENS, max_size=8, unique=True).map(tuple),
    # Of few tokens, so that answers come near to them.
    banned=st.lists(st.lists(FEW, min_size=1, max_size=4).map(tuple), max_size=4).map(tuple),
)
LOGITS = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).normal(0, 8, SIZE).astype(np.float32)
)


def added(rules: LogitsProcessor, logits: np.ndarray) -> np.ndarray:
    values = np.zeros(SIZE, np.float32)
    rules.write_offsets(logits, values)
    return logits + values


def same(got: np.ndarray, expected: np.ndarray) -> None:
    banned = np.isneginf(expected)
    assert (got[banned] < BANNED / 10).all()
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got[~banned], expected[~banned], rtol=1e-4, atol=1e-3)


@given(SAMPLINGS, st.lists(TOKENS, max_size=12), st.lists(FEW, max_size=12), LOGITS)
def test_the_rules_are_those_of_vllm(
    sampling: Sampling, prompt: list[int], answer: list[int], logits: np.ndarray
) -> None:
    rules = LogitsProcessor(sampling, prompt, answer, SIZE)
    expected = ruled(logits, sampling, prompt, answer)

    same(added(rules, logits), expected)
    assert [rules.bans(token) for token in range(SIZE)] == _bans(sampling, answer)


def _bans(sampling: Sampling, answer: list[int]) -> list[bool]:
    only = Sampling(allowed=sampling.allowed, banned=sampling.banned)
    banned = np.isneginf(ruled(np.zeros(SIZE), only, (), answer))
    return [bool(item) and not banned.all() for item in banned]


@given(SAMPLINGS, st.lists(TOKENS, max_size=5), st.lists(FEW, max_size=12), st.data(), LOGITS)
def test_noting_tokens_is_beginning_behind_them(
    sampling: Sampling,
    prompt: list[int],
    answer: list[int],
    data: st.DataObject,
    logits: np.ndarray,
) -> None:
    begun = data.draw(st.integers(0, len(answer)))
    noting = LogitsProcessor(sampling, prompt, answer[:begun], SIZE)
    for token in answer[begun:]:
        added(noting, logits)
        noting.append(token)
    behind = LogitsProcessor(sampling, prompt, answer, SIZE)

    assert added(noting, logits).tolist() == added(behind, logits).tolist()


@pytest.mark.parametrize("offset", [-50, 0, 50])
@pytest.mark.parametrize("name", ["presence_penalty", "frequency_penalty"])
def test_positive_penalties_lower_logits_of_any_sign(name: str, offset: int) -> None:
    logits = np.linspace(-3, 3, SIZE, dtype=np.float32) + offset
    lowered = LogitsProcessor(Sampling(**{name: 1.5}), (), (3, 30), SIZE)
    raised = LogitsProcessor(Sampling(**{name: -1.5}), (), (3, 30), SIZE)

    down, up = added(lowered, logits) - logits, added(raised, logits) - logits
    assert (down[[3, 30]] < -1).all()
    assert (up[[3, 30]] > 1).all()
    assert np.flatnonzero(down).tolist() == np.flatnonzero(up).tolist() == [3, 30]


def test_a_banned_sequence_does_not_begin_in_the_prompt() -> None:
    rules = LogitsProcessor(Sampling(banned=((1, 2, 3),)), (1, 2), (), SIZE)
    assert not rules.bans(3)

    for token, banned in ((1, False), (2, True), (2, False), (1, False), (2, True)):
        rules.append(token)
        assert rules.bans(3) == banned


def test_what_is_banned_is_no_fault_where_nothing_else_is_left() -> None:
    rules = LogitsProcessor(Sampling(allowed=(5, 6), banned=((6,), (5, 5))), (), (), SIZE)
    assert [rules.bans(token) for token in (5, 6, 7)] == [False, True, True]
    rules.append(5)
    assert [rules.bans(token) for token in (5, 6, 7)] == [False, False, False]


def test_the_prompt_counts_for_repetition_only() -> None:
    sampling = Sampling(repetition_penalty=2, presence_penalty=1, frequency_penalty=1)
    logits = np.ones(SIZE, np.float32)

    got = added(LogitsProcessor(sampling, (5, 5), (6,), SIZE), logits)

    assert (got[5], got[6], got[7]) == (0.5, 0.5 - 2, 1)


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(bias=((SIZE, 1.0),)),
        Sampling(allowed=(SIZE,)),
        Sampling(banned=((SIZE,),)),
        Sampling(presence_penalty=1),
    ],
)
def test_a_token_of_no_vocabulary_is_told_at_once(sampling: Sampling) -> None:
    with pytest.raises(IndexError):
        LogitsProcessor(sampling, (), (SIZE,), SIZE)
