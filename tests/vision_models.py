"""Models of text in the form of vision models, whose embeddings are a graph of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
from openvino import opset13 as op

from ovchat_server.engine.genai.graph_parts import parameter
from ovchat_server.engine.genai.hooked_model import GRAPH
from ovchat_server.engine.genai.vision_folder import LANGUAGE_MODEL, TEXT_EMBEDDINGS

if TYPE_CHECKING:
    from pathlib import Path

AXES = 3


def as_vision_model(folder: Path, target: Path, *, axes: int = 1) -> Path:
    """Write a model that says of text what the model in `folder` says; return its folder.

    With three `axes` a token has three positions, as in Qwen's vision models; the model says
    something else if one of them is wrong.
    """
    target.mkdir()
    _language_model(folder, axes, target / LANGUAGE_MODEL)
    _text_embeddings(folder, target / TEXT_EMBEDDINGS)
    for file in folder.iterdir():
        if file.is_file() and not file.name.startswith("openvino_model"):
            (target / file.name).symlink_to(file)
    return target


def _language_model(folder: Path, axes: int, target: Path) -> None:
    model = ov.Core().read_model(folder / GRAPH)
    tokens, embedding = _embedding(model)
    size = embedding.get_output_partial_shape(0)[-1].get_length()
    rows = parameter("inputs_embeds", [-1, -1, size], np.float32)
    for reader in [*embedding.output(0).get_target_inputs()]:
        reader.replace_source_output(rows.output(0))
    for reader in [*tokens.output(0).get_target_inputs()]:
        if reader.get_node().get_type_name() == "ShapeOf":
            reader.replace_source_output(rows.output(0))
    model.add_parameters([rows])
    model.remove_parameter(tokens)
    if axes == AXES:
        _with_axes(model)
    model.validate_nodes_and_infer_types()
    ov.save_model(model, target, compress_to_fp16=False)


def _with_axes(model: ov.Model) -> None:
    plain = model.input("position_ids").get_node()
    positions = parameter("position_ids", [AXES, -1, -1], np.int64)
    axis = op.constant(np.array(0, np.int64))
    first, second, third = (
        op.gather(positions, op.constant(np.array(number, np.int64)), axis)
        for number in range(AXES)
    )
    taken = op.subtract(op.add(first, second), third)
    for reader in [*plain.output(0).get_target_inputs()]:
        reader.replace_source_output(taken.output(0))
    model.add_parameters([positions])
    model.remove_parameter(plain)


def _text_embeddings(folder: Path, target: Path) -> None:
    tokens, embedding = _embedding(ov.Core().read_model(folder / GRAPH))
    tokens.set_friendly_name("input")
    tokens.output(0).set_names({"input"})
    embedding.output(0).set_names({"inputs_embeds"})
    model = ov.Model([op.result(embedding)], [tokens], "embeddings of text")
    ov.save_model(model, target, compress_to_fp16=False)


def _embedding(model: ov.Model) -> tuple[ov.Node, ov.Node]:
    """Return the input of a model, and the operation that looks up its embeddings."""
    tokens = model.input("input_ids").get_node()
    [convert] = [
        reader.get_node()
        for reader in tokens.output(0).get_target_inputs()
        if reader.get_node().get_type_name() == "Convert"
    ]
    [gather] = [reader.get_node() for reader in convert.output(0).get_target_inputs()]
    return tokens, gather
