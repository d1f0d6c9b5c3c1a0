"""How much a model is asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is asked, by the model's speed.

    Attributes:
        answer: Tokens of most answers.
        repeats: Requests of each caller, one after the other.
        delay: Seconds before a request that is to find a long prompt being read.
        stream_tokens: Tokens of a stream that other prompts are to find running.
    """

    answer: int
    repeats: int
    delay: float
    stream_tokens: int


SCALES = {
    "smollm2": Scale(64, 4, 0.1, 400),
    "0.6b": Scale(64, 2, 0.3, 160),
    "demo": Scale(64, 8, 0.03, 1000),
    "qwen2-vl": Scale(64, 2, 0.2, 1000),
}
QUICK = {
    "smollm2": Scale(8, 1, 0.1, 120),
    "0.6b": Scale(8, 1, 0.3, 48),
    "demo": Scale(8, 1, 0.03, 300),
    "qwen2-vl": Scale(8, 1, 0.2, 300),
}
