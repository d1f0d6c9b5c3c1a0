"""How a token is chosen from a row of logits, as genai's sampler does (2026.4.1, sampler.cpp)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation import Sampling
    from ovchat_server.engine.genai.logits_hook import Floats, Integers

# Of the tokens that are sorted for top_p: fewer are nearly always enough.
SORTED = 1024


def choose(logits: Floats, sampling: Sampling, position: int) -> int:
    """Return the next token.

    Args:
        logits: After bias, bans and penalties.
        sampling: Its seed and the position decide which number is drawn.
        position: The number of tokens before it.
    """
    if not sampling.temperature:
        return int(logits.argmax())
    tokens, weights = _candidates(logits, sampling)
    sums = np.cumsum(weights, dtype=np.float64)
    drawn = random.Random(sampling.seed << 32 | position).random()  # noqa: S311
    index = int(np.searchsorted(sums, drawn * sums[-1], side="right"))
    return int(tokens[min(index, len(tokens) - 1)])


def _candidates(logits: Floats, sampling: Sampling) -> tuple[Integers, Floats]:
    """Return the tokens that the filters leave, and their weights.

    top_k comes first and min_p before top_p, which counts the probabilities from before min_p.
    """
    tokens = np.arange(len(logits))
    if 0 < sampling.top_k < len(logits):
        tokens = np.argpartition(logits, -sampling.top_k)[-sampling.top_k :]
    weights = np.exp((logits[tokens] - logits.max()) / np.float32(sampling.temperature))
    enough = sampling.top_p * float(weights.sum())
    if sampling.min_p:
        kept = weights >= np.float32(sampling.min_p)
        tokens, weights = tokens[kept], weights[kept]
    if sampling.top_p < 1:
        kept = _likeliest(weights, enough)
        tokens, weights = tokens[kept], weights[kept]
    return tokens, weights


def _likeliest(weights: Floats, enough: float) -> Integers:
    """Return the places of the highest weights, so many that their sum exceeds `enough`."""
    places = np.arange(len(weights))
    if len(weights) > SORTED:
        highest = np.argpartition(weights, -SORTED)[-SORTED:]
        if weights[highest].sum() > enough:
            places = highest
    places = places[np.argsort(-weights[places])]
    count = np.searchsorted(np.cumsum(weights[places], dtype=np.float64), enough, side="right")
    return places[: count + 1]
