"""The likeliest tokens, and how likely, against plain NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ovchat_server.engine.scheduling.top_tokens import LINES, likeliest, log_total

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = [1, 2, 20, LINES - 1, LINES, LINES + 1, 288, 1536, 21 * LINES, 32_768, 152_064]
COUNTS = [1, 2, 5, 20]


def normal(size: int) -> np.ndarray:
    return np.random.default_rng(size).normal(0, 5, size).astype(np.float32)


def ties(size: int) -> np.ndarray:
    return np.random.default_rng(size).integers(0, 4, size).astype(np.float32)


def few_ties_at_the_top(size: int) -> np.ndarray:
    return np.minimum(normal(size), np.float32(6))


def equal(size: int) -> np.ndarray:
    return np.full(size, 2.5, np.float32)


def best_beside_each_other(size: int) -> np.ndarray:
    logits = normal(size)
    logits[-25:] = np.arange(100, 100 + len(logits[-25:]))
    return logits


def best_in_one_column(size: int) -> np.ndarray:
    logits = normal(size)
    logits[:: max(size // LINES, 1)] += 100
    return logits


def banned(size: int) -> np.ndarray:
    logits = normal(size)
    logits[size // 2 :] = -np.inf
    return logits


KINDS = [
    normal,
    ties,
    few_ties_at_the_top,
    equal,
    best_beside_each_other,
    best_in_one_column,
    banned,
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_first_in_order_and_of_equals_those_of_lower_number(
    kind: Callable[[int], np.ndarray], size: int
) -> None:
    logits = kind(size)
    order = np.argsort(-logits, kind="stable")

    for count in COUNTS:
        assert likeliest(logits, count).tolist() == order[:count].tolist()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("offset", [-1e4, -50, 0, 50, 1e4])
def test_the_total_is_that_of_all_exponentials(size: int, offset: float) -> None:
    logits = normal(size) + np.float32(offset)
    exact = logits.astype(np.float64)
    expected = exact.max() + np.log(np.exp(exact - exact.max()).sum())

    assert log_total(logits) == pytest.approx(expected, abs=1e-4 + 1e-7 * abs(offset))


def test_what_cannot_come_does_not_count_in_the_total() -> None:
    logits = np.array([1, -np.inf, 1, -1e30], np.float32)

    assert log_total(logits) == pytest.approx(1 + np.log(2))


@pytest.mark.parametrize("kind", KINDS)
def test_the_row_stays_as_it_is(kind: Callable[[int], np.ndarray]) -> None:
    logits = kind(1536)
    before = logits.copy()

    likeliest(logits, 5)
    log_total(logits)

    assert logits.tolist() == before.tolist()
