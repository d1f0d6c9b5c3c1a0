"""Tokens are drawn from the distribution that genai's sampler has."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from ovchat_server.engine.contract.generation import Sampling
from ovchat_server.engine.genai.choosing import SORTED, choose

DRAWN = 2000
RANDOM = np.random.default_rng(3)
FEW = RANDOM.permutation(np.linspace(0, 5, 40, dtype=np.float32))
PEAKED = RANDOM.normal(0, 4, 3 * SORTED).astype(np.float32)
# No 1024 of them have half of the probability.
FLAT = RANDOM.permutation(np.linspace(0, 0.5, 3 * SORTED, dtype=np.float32))
SAMPLINGS = {
    "plain": (FEW, Sampling(1.0)),
    "cold": (FEW, Sampling(0.5)),
    "hot": (FEW, Sampling(2.0)),
    "top_k": (FEW, Sampling(1.0, top_k=7)),
    "top_k of more than there are": (FEW, Sampling(1.0, top_k=100)),
    "top_k of one": (FEW, Sampling(1.0, top_k=1)),
    "top_p": (FEW, Sampling(1.0, top_p=0.8)),
    "top_p of nearly nothing": (FEW, Sampling(1.0, top_p=0.01)),
    "top_p behind the temperature": (FEW, Sampling(0.5, top_p=0.8)),
    "top_p of what top_k leaves": (FEW, Sampling(1.0, top_p=0.6, top_k=7)),
    "min_p": (FEW, Sampling(1.0, min_p=0.2)),
    "min_p behind the temperature": (FEW, Sampling(2.0, min_p=0.2)),
    # What min_p leaves sums to more than this, but to less than it of all.
    "top_p from before min_p": (FEW, Sampling(1.0, top_p=0.9, min_p=0.2)),
    "top_p of less than min_p leaves": (FEW, Sampling(1.0, top_p=0.3, min_p=0.2)),
    "all": (FEW, Sampling(1.5, top_p=0.7, top_k=12, min_p=0.1)),
    "few of many": (PEAKED, Sampling(1.0, top_p=0.9)),
    "many of many": (FLAT, Sampling(1.0, top_p=0.8)),
    "all of many": (FLAT, Sampling(1.0)),
}


def chances(logits: np.ndarray, sampling: Sampling) -> dict[int, float]:
    """How likely each token is that may come, the likeliest first."""
    tokens = sorted(range(len(logits)), key=lambda token: -logits[token])
    tokens = tokens[: sampling.top_k or None]
    highest = float(logits[tokens[0]])
    weights = [math.exp((float(logits[item]) - highest) / sampling.temperature) for item in tokens]
    left: dict[int, float] = {}
    for token, weight in zip(tokens, weights, strict=True):
        if weight < sampling.min_p or sum(left.values()) > sampling.top_p:
            break
        left[token] = weight / sum(weights)
    whole = sum(left.values())
    return {token: chance / whole for token, chance in left.items()}


def bins(expected: dict[int, float]) -> list[list[int]]:
    """Tokens, as many together as are likely to be drawn often enough to be counted."""
    found: list[list[int]] = [[]]
    room = 0.0
    for token, chance in expected.items():
        found[-1].append(token)
        room += chance * DRAWN
        if room >= 20:
            found.append([])
            room = 0.0
    rest = found.pop()
    return [*found[:-1], found[-1] + rest]


@pytest.mark.parametrize("name", SAMPLINGS)
def test_tokens_come_as_often_as_with_genai(name: str) -> None:
    logits, sampling = SAMPLINGS[name]
    expected = chances(logits, sampling)

    drawn = Counter(choose(logits, sampling, position) for position in range(DRAWN))

    assert drawn.keys() <= expected.keys()
    squares, together = 0.0, bins(expected)
    for tokens in together:
        mean = DRAWN * sum(expected[token] for token in tokens)
        squares += (sum(drawn[token] for token in tokens) - mean) ** 2 / mean
    # Chi-square: its mean is the degrees of freedom, its variance twice as much.
    free = len(together) - 1
    assert squares <= free + 4 * math.sqrt(2 * free)


def test_the_samplings_are_told_apart() -> None:
    left = {name: len(chances(*item)) for name, item in SAMPLINGS.items()}
    assert left["top_p from before min_p"] == left["min_p"]
    assert 1 < left["top_p of less than min_p leaves"] < left["min_p"] < len(FEW)
    assert left["top_p behind the temperature"] < left["top_p"] < len(FEW)
    assert left["min_p"] < left["min_p behind the temperature"] < len(FEW)
    assert 1 < left["top_p of what top_k leaves"] < left["top_k"]
    assert left["top_k of one"] == left["top_p of nearly nothing"] == 1
    assert left["few of many"] < SORTED < left["many of many"] < left["all of many"]


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(top_k=3, top_p=0.5, min_p=0.1, seed=9)])
def test_greedy_is_the_likeliest(sampling: Sampling) -> None:
    assert {choose(FEW, sampling, position) for position in range(20)} == {int(FEW.argmax())}


def test_what_is_drawn_depends_on_seed_and_position_alone() -> None:
    def drawn(seed: int) -> list[int]:
        return [choose(FEW, Sampling(1.0, seed=seed), position) for position in range(20)]

    assert drawn(1) == drawn(1)
    # Nor are other seeds the same numbers at other positions.
    assert drawn(1)[1:] != drawn(2)[:-1]
    assert drawn(1) != drawn(2)
