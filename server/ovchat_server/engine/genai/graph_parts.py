"""What the graphs of models that genai takes are made of."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo


def parameter(name: str, shape: list[int], kind: type) -> ov.Node:
    """An input of the model; -1: of any length."""
    node = op.parameter(shape, kind, name)
    # genai finds it by both.
    node.set_friendly_name(name)
    node.output(0).set_names({name})
    return node


def integers(*values: int) -> ov.Node:
    """A list of constants, such as a shape."""
    return op.constant(np.array(values, np.int64))


def with_past(
    key: ov.Node, value: ov.Node, tokens: ov.Node, beams: ov.Node
) -> tuple[list[ov.Node], list[ov.Node]]:
    """A layer's key and value behind those of the tokens before, which are states of the model.

    Args:
        key: Of the tokens that are read, by sequence, head (one), token and feature.
        value: The same.
        tokens: The model's input of that name.
        beams: Which sequence each goes on from; an input, too.

    Returns:
        Key and value of all tokens, and what writes them back: sinks of the model.
    """
    size = key.get_output_partial_shape(0)[-1].get_length()
    first = op.constant(np.array(0, np.int64))
    batch = op.gather(op.shape_of(tokens), integers(0), first)
    shape = op.concat([batch, integers(1), integers(0), integers(size)], 0)
    empty = op.broadcast(op.constant(np.array(0, np.float32)), shape)
    caches, sinks = [], []
    for name, part in (("key", key), ("value", value)):
        info = VariableInfo()
        info.data_shape = ov.PartialShape([-1, 1, -1, size])
        info.data_type = ov.Type.f32
        info.variable_id = name
        variable = Variable(info)
        past = op.gather(op.read_value(empty, variable), beams, first)
        caches.append(op.concat([past, part], 2))
        sinks.append(op.assign(caches[-1], variable))
    return caches, sinks
