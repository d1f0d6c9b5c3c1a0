"""How the vectors of a text's tokens become one, as sentence-transformers' Pooling computes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from ovchat_server.engine.contract.pooling_messages import PooledByGraph, Pooling

    Floats = NDArray[np.float32]


def _mean_sqrt_len_tokens(hidden: Floats) -> Floats:
    pooled: Floats = hidden.sum(axis=0) / np.sqrt(np.float32(len(hidden)))
    return pooled


def _weightedmean(hidden: Floats) -> Floats:
    weights = np.arange(1, len(hidden) + 1, dtype=np.float32)
    # Not a product of matrices, for which numpy would start threads of its own.
    pooled: Floats = np.einsum("t,td->d", weights, hidden) / weights.sum()
    return pooled


# Each is given the vectors of a text's own tokens, without padding; they are a view.
POOLINGS: Mapping[Pooling | PooledByGraph, Callable[[Floats], Floats]] = {
    "cls": lambda hidden: hidden[0],
    "lasttoken": lambda hidden: hidden[-1],
    "max": lambda hidden: hidden.max(axis=0),
    "mean": lambda hidden: hidden.mean(axis=0),
    "mean_sqrt_len_tokens": _mean_sqrt_len_tokens,
    "weightedmean": _weightedmean,
}


def finished(vector: Floats, dimensions: int, *, normalize: bool) -> Floats:
    """Return a vector as a request asks for it.

    Args:
        vector: Of a text.
        dimensions: How many numbers of it are kept; 0: all.
        normalize: Whether it has length 1 then; one of zeros stays as it is.
    """
    kept = vector[:dimensions] if dimensions else vector
    if not normalize:
        return kept
    length = np.linalg.norm(kept)
    return kept / length if length else kept
