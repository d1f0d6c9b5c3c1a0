"""Finds in a model's graph what makes vectors of texts, and leaves out the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
from openvino import opset13 as op

from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.graph_parts import integers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.pooling_messages import PoolingSpec

TOKENS = "input_ids"
MASK = "attention_mask"
TYPES = "token_type_ids"
POSITIONS = "position_ids"
BEAMS = "beam_idx"
REQUIRED = (TOKENS, MASK)
OPTIONAL = (TYPES, POSITIONS, BEAMS)
HIDDEN_STATES = ("last_hidden_state", "token_embeddings")
LOGITS = "logits"
VECTORS = ("sentence_embedding", LOGITS)
# [text, token, number] and [text, number].
PER_TOKEN, PER_TEXT = 3, 2
# What models do with their logits, each number by itself.
ELEMENTWISE = ("Add", "Clamp", "Convert", "Divide", "Multiply", "Subtract", "Tanh")


def reduce_to_vectors(model: ov.Model, spec: PoolingSpec) -> None:
    """Leave only the output of a model that the spec's vectors are made of.

    Raises:
        ModelLoadError: The graph lacks what is needed.
    """
    _check_inputs(model)
    if spec.answer_tokens:
        output = _named(model, (LOGITS,), PER_TOKEN, "of a language model")
        _answer_only(model, output, spec.answer_tokens)
    elif spec.pooling == "graph":
        output = _vectors(model)
    else:
        output = _named(model, HIDDEN_STATES, PER_TOKEN, f"for pooling {spec.pooling!r}")
    kept = output.node
    for result in model.get_results():
        if result.get_friendly_name() != kept.get_friendly_name():
            model.remove_result(result)
    model.validate_nodes_and_infer_types()


def _check_inputs(model: ov.Model) -> None:
    names: set[str] = set()
    for given in model.inputs:
        known = given.get_names() & {*REQUIRED, *OPTIONAL}
        if not known:
            raise ModelLoadError(
                f"its graph asks for {_name(given)!r}, which is nothing that texts have: "
                "export it for feature-extraction or text-classification"
            )
        names |= known
    if missing := [name for name in REQUIRED if name not in names]:
        raise ModelLoadError(f"its graph has no input {missing[0]!r}: export it anew")


def _vectors(model: ov.Model) -> ov.Output:
    """Return the output that is a row per text."""
    for name in VECTORS:
        if output := _find(model, name, PER_TEXT):
            return output
    rows = [output for output in model.outputs if _rank(output) == PER_TEXT]
    if len(rows) == 1:
        return rows[0]
    raise ModelLoadError(
        f"its graph has no output that is a row per text, but {_shown(model)}: export it for "
        "text-classification, or choose a pooling if it has hidden states"
    )


def _named(model: ov.Model, names: Sequence[str], rank: int, purpose: str) -> ov.Output:
    for name in names:
        if output := _find(model, name, rank):
            return output
    raise ModelLoadError(
        f"its graph has no output {' or '.join(names)} {purpose}, but {_shown(model)}: export it "
        f"for {'text-generation' if LOGITS in names else 'feature-extraction'}"
    )


def _find(model: ov.Model, name: str, rank: int) -> ov.Output | None:
    found = (item for item in model.outputs if name in item.get_names() and _rank(item) == rank)
    return next(found, None)


def _answer_only(model: ov.Model, logits: ov.Output, tokens: Sequence[int]) -> None:
    """Compute a language model's logits of some tokens, behind the last token of each text.

    Logits of all tokens of a text can take a hundred times the memory of all else.
    """
    vocabulary = logits.get_partial_shape()[2]
    if vocabulary.is_static and max(tokens) >= vocabulary.get_length():
        raise ModelLoadError(f"the token {max(tokens)} is none of its {vocabulary.get_length()}")
    head = _last_matmul(logits.node)
    mask = next(item for item in model.inputs if MASK in item.get_names())
    axis = op.constant(np.array(1, np.int64))
    lengths = op.reduce_sum(op.convert(mask.node, "i64"), axis, keep_dims=True)
    last = op.subtract(lengths, integers(1))
    hidden = head.input_value(0)
    # [text, token, feature] by [text, 1]: [text, 1, feature].
    row = op.gather(hidden, last, axis, batch_dims=1)
    head.input(0).replace_source_output(row.output(0))
    result = logits.node.input(0)
    columns = op.constant(np.array(2, np.int64))
    answers = op.gather(result.get_source_output(), integers(*tokens), columns)
    size = integers(0, len(tokens))
    result.replace_source_output(op.reshape(answers, size, special_zero=True).output(0))


def _last_matmul(result: ov.Node) -> ov.Node:
    """Return what multiplies hidden states by the vocabulary.

    Raises:
        ModelLoadError: The graph is not of a language model.
    """
    node = result.input_value(0).get_node()
    while node.get_type_name() in ELEMENTWISE:
        # The other operand, if there is one, is a constant, perhaps of another type.
        sources = [value.get_node() for value in node.input_values()]
        node = next((item for item in sources if not _constant(item)), sources[0])
    if node.get_type_name() != "MatMul" or _rank(node.input_value(0)) != PER_TOKEN:
        raise ModelLoadError(
            f"its graph makes logits by a {node.get_type_name()}, not by multiplying hidden states "
            "by the vocabulary: export it for text-generation"
        )
    return node


def _constant(node: ov.Node) -> bool:
    while node.get_type_name() == "Convert":
        node = node.input_value(0).get_node()
    constant: bool = node.get_type_name() == "Constant"
    return constant


def _rank(output: ov.Output) -> int:
    rank = output.get_partial_shape().rank
    return -1 if rank.is_dynamic else int(rank.get_length())


def _shown(model: ov.Model) -> str:
    outputs = (f"{_name(item)}{item.get_partial_shape()}" for item in model.outputs)
    return ", ".join(outputs)


def _name(port: ov.Output) -> str:
    return min(port.get_names(), default="a nameless one")
