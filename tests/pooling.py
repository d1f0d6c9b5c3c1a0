"""Models that make vectors whose right answers are a line of numpy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import openvino as ov
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo

from ovchat_server.engine.contract.pooling_messages import PoolingInput, PoolingSpec
from ovchat_server.engine.genai.graph_parts import batch_size, integers, parameter
from ovchat_server.engine.pooling.model import PoolingModel
from ovchat_server.engine.pooling.worker import PoolingWorker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ovchat_server.engine.contract.pooling_messages import (
        PoolingLimits,
        PoolingOutput,
        PoolingRequest,
    )
    from ovchat_server.engine.contract.worker import Worker, WorkerContext

    Floats = NDArray[np.float32]

VOCABULARY, SIZE = 300, 16
# No inference succeeds with the first of them; the process dies of the second one.
BROKEN_TOKEN, DEADLY_TOKEN = VOCABULARY - 1, VOCABULARY - 2
PAD_TOKEN = 7
ANSWERS = (11, 5)
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}

_random = np.random.default_rng(7)
TABLE = _random.standard_normal((VOCABULARY, SIZE)).astype(np.float32)
HEAD = _random.standard_normal((SIZE, VOCABULARY)).astype(np.float32)

Kind = Literal["hidden", "graph", "language", "picture"]


def hidden_states(tokens: Sequence[int]) -> Floats:
    """What the model makes of each token: it sees the whole text."""
    rows = TABLE[[*tokens]]
    return rows + rows.mean(0)


def vector(tokens: Sequence[int], pooling: str = "mean") -> Floats:
    """The right answer."""
    hidden = hidden_states(tokens)
    weights = np.arange(1, len(hidden) + 1)[:, None]
    pooled: Floats = {
        "cls": hidden[0],
        "lasttoken": hidden[-1],
        "max": hidden.max(0),
        "mean": hidden.mean(0),
        "mean_sqrt_len_tokens": hidden.sum(0) / len(hidden) ** 0.5,
        "weightedmean": (hidden * weights).sum(0) / weights.sum(),
        "graph": hidden.mean(0),
    }[pooling].astype(np.float32)
    return pooled


def answers(tokens: Sequence[int]) -> Floats:
    """The right answer of the language model: it sees the text up to each token."""
    return 0.5 * (TABLE[[*tokens]].sum(0) @ HEAD)[[*ANSWERS]]


def numbers(packed: bytes) -> Floats:
    return np.frombuffer(packed, "<f4")


def as_input(tokens: Sequence[int], index: int = 0) -> PoolingInput:
    return PoolingInput(index, np.array(tokens, "<i4").tobytes())


def spec(path: Path, **changes: Any) -> PoolingSpec:
    own = {"pooling": "mean", "pad_token": PAD_TOKEN, "properties": EXACT}
    return PoolingSpec(name="pooling", path=str(path), **own | changes)


def write_model(path: Path, kind: Kind = "hidden") -> Path:
    """Fill a folder with a model."""
    path.mkdir(exist_ok=True)
    ov.save_model(_graph(kind), path / "openvino_model.xml", compress_to_fp16=False)
    return path


def _graph(kind: Kind) -> Any:
    tokens = parameter("input_ids", [-1, -1], np.int64)
    mask = parameter("attention_mask", [-1, -1], np.int64)
    axis = op.constant(np.array(1, np.int64))
    rows = op.gather(op.constant(TABLE), tokens, op.constant(np.array(0, np.int64)))
    # A shape that cannot be, with a broken token.
    is_broken = op.equal(tokens, op.constant(np.array(BROKEN_TOKEN, np.int64)))
    broken = op.reduce_sum(op.convert(is_broken, "i64"), integers(0, 1), keep_dims=False)
    shape = op.add(op.shape_of(rows), op.multiply(integers(0, 0, 1), broken))
    rows = op.reshape(rows, shape, special_zero=False)
    seen = op.unsqueeze(op.convert(mask, "f32"), integers(2))
    own = op.multiply(rows, seen)
    if kind == "language":
        return _language_model(own, tokens, mask)
    count = op.reduce_sum(seen, axis, keep_dims=True)
    mean = op.divide(op.reduce_sum(own, axis, keep_dims=True), count)
    # What padding has is not zero: who takes it for a text's own goes wrong.
    hidden = op.add(rows, mean)
    if kind == "graph":
        summed = op.reduce_sum(op.multiply(hidden, seen), axis, keep_dims=False)
        pooled = op.divide(summed, op.squeeze(count, axis))
        pooled.output(0).set_names({"sentence_embedding"})
        hidden.output(0).set_names({"token_embeddings"})
        return ov.Model([op.result(hidden), op.result(pooled)], [tokens, mask], kind)
    hidden.output(0).set_names({"last_hidden_state"})
    others = [parameter("pixel_values", [-1], np.float32)] if kind == "picture" else []
    return ov.Model([op.result(hidden)], [tokens, mask, *others], kind)


def _language_model(rows: Any, tokens: Any, mask: Any) -> Any:
    """Sums up what it has read, which is a state of it, and multiplies that by a vocabulary."""
    beams = parameter("beam_idx", [-1], np.int32)
    axis = op.constant(np.array(1, np.int64))
    zero = op.constant(np.array(0, np.float32))
    empty = op.broadcast(zero, op.concat([batch_size(tokens), integers(1, SIZE)], 0))
    info = VariableInfo()
    info.data_shape = ov.PartialShape([-1, 1, SIZE])
    info.data_type = ov.Type.f32
    info.variable_id = "read"
    variable = Variable(info)
    first = op.constant(np.array(0, np.int64))
    past = op.gather(op.read_value(empty, variable), beams, first)
    hidden = op.add(op.cum_sum(rows, axis), past)
    sink = op.assign(op.gather(hidden, integers(-1), axis), variable)
    logits = op.matmul(hidden, op.constant(HEAD), False, False)  # noqa: FBT003
    # As some models cap theirs.
    scaled = op.multiply(op.constant(np.array(0.5, np.float32)), logits)
    scaled.output(0).set_names({"logits"})
    return ov.Model([op.result(scaled)], [sink], [tokens, mask, beams], "language")


# In the process.


class DeadlyModel(PoolingModel):
    def run(self, batch: Sequence[PoolingInput]) -> list[Floats]:
        if any(DEADLY_TOKEN in np.frombuffer(text.tokens, "<i4") for text in batch):
            os._exit(1)
        return super().run(batch)


def load(
    frame: bytes, context: WorkerContext
) -> Worker[PoolingRequest, PoolingOutput, PoolingLimits]:
    """Load a model that a process can die of."""
    decoded = msgspec.msgpack.decode(frame, type=PoolingSpec)
    return PoolingWorker(DeadlyModel(decoded), decoded.max_batch_tokens, context)
