"""Parts of model graphs that genai accepts."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo


def parameter(name: str, shape: list[int], kind: type) -> ov.Node:
    """Return an input of the model; -1 in its shape stands for any length."""
    node = op.parameter(shape, kind, name)
    # genai finds it by both.
    node.set_friendly_name(name)
    node.output(0).set_names({name})
    return node


def integers(*values: int) -> ov.Node:
    """Return a constant list of integers, such as a shape."""
    return op.constant(np.array(values, np.int64))


def batch_size(tokens: ov.Node) -> ov.Node:
    """Return how many sequences there are, as a list of one integer.

    Args:
        tokens: The model's input "input_ids".
    """
    return op.gather(op.shape_of(tokens), integers(0), op.constant(np.array(0, np.int64)))


def with_past(
    key: ov.Node, value: ov.Node, tokens: ov.Node, beams: ov.Node, prefix: str = ""
) -> tuple[list[ov.Node], list[ov.Node]]:
    """Append keys and values to those of earlier tokens, which are states of the model.

    Args:
        key: Of the tokens that are read; shape: sequence, head, token, feature.
        value: Of the same shape.
        tokens: The model's input "input_ids".
        beams: The model's input "beam_idx": which sequence each one continues.
        prefix: Begins the states' names, which are the layer's own.

    Returns:
        Key and value of all tokens, and the sinks of the model that write them back.
    """
    _, heads, _, size = (
        -1 if part.is_dynamic else part.get_length() for part in key.get_output_partial_shape(0)
    )
    first = op.constant(np.array(0, np.int64))
    shape = op.concat([batch_size(tokens), integers(heads, 0, size)], 0)
    empty = op.broadcast(op.constant(np.array(0, np.float32)), shape)
    caches, sinks = [], []
    for name, part in (("key", key), ("value", value)):
        info = VariableInfo()
        info.data_shape = ov.PartialShape([-1, heads, -1, size])
        info.data_type = ov.Type.f32
        info.variable_id = f"{prefix}{name}"
        variable = Variable(info)
        past = op.gather(op.read_value(empty, variable), beams, first)
        caches.append(op.concat([past, part], 2))
        sinks.append(op.assign(caches[-1], variable))
    return caches, sinks


def one_head(
    hidden: ov.Node, tokens: ov.Node, beams: ov.Node, size: int
) -> tuple[ov.Node, list[ov.Node]]:
    """Append attention of one head: genai loads no model without.

    Args:
        hidden: What each token is; shape: sequence, token, feature.
        tokens: See `with_past`.
        beams: See `with_past`.
        size: How many features there are.

    Returns:
        The same, attended to, and the sinks of the model.
    """
    heads = op.transpose(
        op.reshape(hidden, integers(0, 0, 1, size), special_zero=True), integers(0, 2, 1, 3)
    )
    caches, sinks = with_past(heads, heads, tokens, beams)
    attended = op.scaled_dot_product_attention(heads, *caches, op.constant(np.array(0, np.float32)))
    merged = op.reshape(
        op.transpose(attended, integers(0, 2, 1, 3)), integers(0, 0, size), special_zero=True
    )
    return merged, sinks
