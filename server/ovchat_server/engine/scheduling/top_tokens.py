"""The likeliest tokens of a row of logits, and their log probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A row is searched as a table of so many lines: the likeliest tokens are in the columns with the
# highest maxima. For 152,000 tokens that takes a tenth of the time of np.argpartition.
LINES = 64


def likeliest(logits: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Return the `count` likeliest tokens, the likeliest first; of equals, the lower number."""
    width = len(logits) // LINES
    maxima = logits[: LINES * width].reshape(LINES, width).max(axis=0, initial=-np.inf)
    columns = np.arange(width)
    if count < width:
        columns = columns[maxima >= np.partition(maxima, -count)[-count]]
    table = np.add.outer(np.arange(LINES) * width, columns).ravel()
    tokens = np.concatenate([table, np.arange(LINES * width, len(logits))])
    return tokens[np.argsort(-logits[tokens], kind="stable")[:count]]


def log_total(logits: NDArray[np.float32]) -> float:
    """Return the log-sum-exp of the logits: a token's logit minus this is its log probability."""
    highest = logits.max()
    return float(highest + np.log(np.exp(logits - highest).sum()))


def top_tokens(logits: NDArray[np.float32], total: float, count: int) -> list[tuple[int, float]]:
    """Return the `count` likeliest tokens and their log probabilities, given the log-sum-exp."""
    return [(token, float(logits[token]) - total) for token in likeliest(logits, count).tolist()]
