"""What an answer must be: a model run token by token, and vLLM's rules written out slowly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from ovchat_server.engine.contract.generation import PromptScore

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from ovchat_server.engine.contract.generation import Sampling

Row = NDArray[np.float64]


def ruled(logits: Any, sampling: Sampling, prompt: Sequence[int], answer: Sequence[int]) -> Row:
    """The logits that the next token is chosen from, in the order of v1/sample/sampler.py."""
    row = np.array(logits, np.float64)
    if sampling.allowed:
        for token in {*range(len(row))}.difference(sampling.allowed):
            row[token] = -np.inf
    for *before, last in sampling.banned:
        if [*answer][len(answer) - len(before) :] == before:
            row[last] = -np.inf
    for token, value in sampling.bias:
        row[token] += value
    for token in {*prompt, *answer}:
        penalty = sampling.repetition_penalty
        row[token] = row[token] / penalty if row[token] > 0 else row[token] * penalty
    for token in set(answer):
        row[token] -= sampling.frequency_penalty * [*answer].count(token)
        row[token] -= sampling.presence_penalty
    return row


def log_softmax(logits: Any) -> Row:
    row = np.array(logits, np.float64)
    row -= row.max()
    return row - np.log(np.exp(row).sum())


@dataclass
class Answer:
    """One, with the model's own logits before each of its tokens."""

    tokens: list[int]
    rows: list[Row]

    @property
    def logprobs(self) -> list[float]:
        pairs = zip(self.tokens, self.rows, strict=True)
        return [float(log_softmax(row)[token]) for token, row in pairs]

    def tops(self, count: int) -> list[list[tuple[int, float]]]:
        """The likeliest tokens in each place."""
        told = [log_softmax(row) for row in self.rows]
        orders = [np.argsort(-row, kind="stable")[:count].tolist() for row in told]
        return [
            [(token, float(row[token])) for token in order]
            for row, order in zip(told, orders, strict=True)
        ]


class ReferenceModel:
    """A model without genai, which reads everything anew for each token."""

    def __init__(self, path: Path) -> None:
        model = ov.Core().read_model(path / "openvino_model.xml")
        precision = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
        self._request = ov.compile_model(model, "CPU", precision).create_infer_request()
        self._known: dict[tuple[int, ...], Row] = {}

    def logits(self, tokens: Sequence[int]) -> Row:
        """Of the token behind these."""
        if (row := self._known.get(tuple(tokens))) is None:
            self._request.reset_state()
            size = (1, len(tokens))
            inputs = {
                "input_ids": np.array([tokens], np.int64),
                "attention_mask": np.ones(size, np.int64),
                "position_ids": np.arange(len(tokens), dtype=np.int64).reshape(size),
                "beam_idx": np.zeros(1, np.int32),
            }
            row = self._request.infer(inputs)["logits"][0, -1].astype(np.float64)
            self._known[tuple(tokens)] = row
        return row

    def scores(self, prompt: Sequence[int], top: int, step: int = 1) -> list[PromptScore]:
        """What is told of a prompt's tokens behind the first; of every so many."""
        scores = []
        for place in range(1, len(prompt), step):
            row = log_softmax(self.logits(prompt[:place]))
            number = float(row[prompt[place]])
            likeliest = np.argsort(-row, kind="stable")[:top].tolist()
            alternatives = tuple((token, float(row[token])) for token in likeliest)
            scores.append(PromptScore(number, int((row >= number).sum()), alternatives))
        return scores

    def answer(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        length: int,
        ends: Collection[int] = (),
        fewest: int = 0,
    ) -> Answer:
        """The likeliest tokens under the rules, up to one of `ends`, but `fewest` before it."""
        tokens: list[int] = []
        rows: list[Row] = []
        while len(tokens) < length and not (tokens and tokens[-1] in ends):
            rows.append(self.logits([*prompt, *tokens]))
            row = ruled(rows[-1], sampling, prompt, tokens)
            if len(tokens) < fewest:
                row[[*ends]] = -np.inf
            tokens.append(int(row.argmax()))
        return Answer(tokens, rows)
