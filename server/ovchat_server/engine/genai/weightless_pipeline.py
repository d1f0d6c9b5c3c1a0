"""A pipeline whose model has no weights: it samples from logits that are all 0, or given."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
import openvino_genai as genai
from openvino import opset13 as op

from ovchat_server.engine.genai.graph_parts import integers, one_head, parameter
from ovchat_server.engine.genai.hooked_model import GRAPH
from ovchat_server.engine.genai.model_graph import Graph
from ovchat_server.engine.genai.python_operation import python_operation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.engine.genai.logits_hook import Floats

HEAD_SIZE = 32
GIVEN = "GivenLogits"


def weightless_pipeline(
    tokenizer: genai.Tokenizer,
    vocabulary_size: int,
    blocks: int,
    given: ov.OpExtension | None = None,
    **properties: int,
) -> genai.ContinuousBatchingPipeline:
    """Return a pipeline.

    Args:
        tokenizer: Holds the compiled grammars, for all pipelines made with this object.
        vocabulary_size: How many logits it has.
        blocks: How many KV blocks it has: genai loads no model without attention.
        given: The operation that gives its logits; None: they are 0.
        properties: OpenVINO's.
    """
    config = genai.SchedulerConfig()
    config.num_kv_blocks = blocks
    with tempfile.TemporaryDirectory() as directory:
        # genai loads models from folders only.
        graph = Path(directory) / GRAPH
        ov.save_model(_model(vocabulary_size), graph)
        if given:
            _insert_given(graph)
        extensions = {"extensions": [given]} if given else {}
        return genai.ContinuousBatchingPipeline(
            directory, tokenizer, config, "CPU", **extensions, **properties
        )


def one_token() -> ov.Tensor:
    """Return the shortest prompt, which means nothing."""
    return ov.Tensor(np.array([[0]], dtype=np.int64))


def given_logits(row: Callable[[], Floats]) -> ov.OpExtension:
    """Return the operation that gives a step of one sequence its logits; see python_operation."""

    def evaluate(outputs: Sequence[ov.Tensor], inputs: Sequence[ov.Tensor]) -> None:
        del inputs
        logits = row()
        outputs[0].shape = (1, 1, len(logits))
        outputs[0].data[0, 0] = logits

    return python_operation(GIVEN, [[-1, -1, -1]], evaluate)


def _insert_given(path: Path) -> None:
    graph = Graph(path)
    logits = graph.result
    if logits is None:
        raise RuntimeError("a model without logits")
    [given] = graph.insert(GIVEN, "extension", [logits], [(logits.precision, ["-1", "-1", "-1"])])
    graph.show(given)
    graph.write(path)


def _model(vocabulary_size: int) -> ov.Model:
    """Return a model whose logits are all 0."""
    tokens = parameter("input_ids", [-1, -1], np.int64)
    beams = parameter("beam_idx", [-1], np.int32)
    embedded = op.multiply(
        op.unsqueeze(op.convert(tokens, "f32"), integers(2)),
        op.constant(np.zeros((1, 1, HEAD_SIZE), np.float32)),
    )
    hidden, sinks = one_head(embedded, tokens, beams, HEAD_SIZE)
    mean = op.reduce_mean(hidden, integers(2), keep_dims=True)
    logits = op.tile(mean, integers(1, 1, vocabulary_size))
    logits.output(0).set_names({"logits"})
    return ov.Model([op.result(logits)], sinks, [tokens, beams], "weightless")
