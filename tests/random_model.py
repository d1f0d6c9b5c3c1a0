"""A small model that knows nothing: its logits depend on all tokens and where they stand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
from openvino import opset13 as op

from ovchat_server.engine.genai.graph_parts import integers, parameter, with_past
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 64
LONGEST = 1024
GRAPH = "openvino_model.xml"


def save_random_model(directory: Path, vocabulary: int, offset: float = 0) -> Path:
    """A folder for the engine, with the demo model's tokenizer; `offset` is in all logits."""
    directory.mkdir(exist_ok=True)
    for file in (ROOT / "models/demo").iterdir():
        if file.is_file() and not file.name.startswith(("openvino_model.", "config.")):
            (directory / file.name).symlink_to(file)
    config = json.loads((ROOT / "models/demo/config.json").read_bytes())
    text = json.dumps({**config, "vocab_size": vocabulary})
    (directory / "config.json").write_text(text, encoding="utf-8")
    ov.save_model(_model(vocabulary, offset), directory / GRAPH, compress_to_fp16=False)
    return directory


def _model(vocabulary: int, offset: float) -> ov.Model:
    """One layer: attention over embeddings of tokens and positions, and what they are."""
    random = np.random.default_rng(vocabulary)
    tokens = parameter("input_ids", [-1, -1], np.int64)
    mask = parameter("attention_mask", [-1, -1], np.int64)
    positions = parameter("position_ids", [-1, -1], np.int64)
    beams = parameter("beam_idx", [-1], np.int32)
    first = op.constant(np.array(0, np.int64))
    hidden = op.add(
        op.gather(_weights(random, vocabulary, SIZE), tokens, first),
        op.gather(_weights(random, LONGEST, SIZE), positions, first),
    )
    query, *parts = (
        op.transpose(
            op.reshape(
                _product(hidden, _weights(random, SIZE, SIZE, scale=0.2)),
                integers(0, 0, 1, SIZE),
                special_zero=True,
            ),
            integers(0, 2, 1, 3),
        )
        for _ in range(3)
    )
    caches, sinks = with_past(*parts, tokens, beams)
    # All may be seen: of one layer's last row, all others are the past.
    zero = op.constant(np.array(0, np.float32))
    seen = op.unsqueeze(op.multiply(op.convert(mask, "f32"), zero), integers(1, 2))
    attended = op.reshape(
        op.transpose(
            op.scaled_dot_product_attention(query, *caches, seen),
            integers(0, 2, 1, 3),
        ),
        integers(0, 0, SIZE),
        special_zero=True,
    )
    ones = op.gather(op.constant(np.ones((vocabulary, 1), np.float32)), tokens, first)
    features = op.concat([op.add(hidden, attended), ones], 2)
    head = random.standard_normal((SIZE + 1, vocabulary)).astype(np.float32) * 0.15
    head[-1] = offset
    logits = _product(features, op.constant(head))
    logits.output(0).set_names({"logits"})
    inputs = [tokens, mask, positions, beams]
    return ov.Model([op.result(logits)], sinks, inputs, "random")


def _weights(random: np.random.Generator, rows: int, columns: int, scale: float = 1) -> ov.Node:
    return op.constant(random.standard_normal((rows, columns)).astype(np.float32) * scale)


def _product(left: ov.Node, right: ov.Node) -> ov.Node:
    return op.matmul(left, right, transpose_a=False, transpose_b=False)
