"""The graph of a decoder, as genai and OpenVINO's plugins recognise its parts.

genai has a reader of GGUF files of its own, whose graph this follows (openvino.genai,
gguf_utils/building_blocks.cpp). It rounds the zero points of 4-bit weights: SmolLM2-135M in Q4_1
has a perplexity of 30.5 with it, of 26.0 with the weights as they are (2026.4.1).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

import numpy as np
import openvino as ov
from openvino import opset13 as op

from ovchat_server.engine.genai.graph_parts import batch_size, integers, parameter, with_past

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ovchat_server.conversion.decoder import Decoder

# What activations are divided by where they are computed in 16 bits, as genai's reader has it.
ACTIVATIONS_SCALE = 8.0


class Weights(Protocol):
    """The weights of a model, by their names in GGUF files."""

    def matrix(self, name: str) -> ov.Node:
        """Return a matrix, in whatever form its numbers are kept."""
        ...

    def vector(self, name: str) -> NDArray[np.float32]:
        """Return a vector."""
        ...

    def has(self, name: str) -> bool:
        """Return whether there is a matrix or a vector of that name."""
        ...


def decoder_graph(decoder: Decoder, weights: Weights) -> ov.Model:
    """Build the graph of a model."""
    return _Builder(decoder, weights).build()


class _Builder:
    def __init__(self, decoder: Decoder, weights: Weights) -> None:
        self._decoder = decoder
        self._weights = weights
        self._tokens = parameter("input_ids", [-1, -1], np.int64)
        self._mask = parameter("attention_mask", [-1, -1], np.int64)
        self._positions = parameter("position_ids", [-1, -1], np.int64)
        self._beams = parameter("beam_idx", [-1], np.int32)
        self._batch = batch_size(self._tokens)
        self._rotation = self._rotate_by()
        self._seen = self._may_see()
        self._sinks: list[ov.Node] = []

    def build(self) -> ov.Model:
        embedding = self._weights.matrix("token_embd.weight")
        axis = op.constant(np.array(0, np.int32))
        state = op.gather(embedding, op.convert(self._tokens, "i32"), axis)
        for layer in range(self._decoder.layers):
            state = self._layer(state, f"blk.{layer}")
        state = self._normed(state, "output_norm")
        own = self._weights.has("output.weight")
        logits = _product(state, self._weights.matrix("output.weight") if own else embedding)
        logits.output(0).set_names({"logits"})
        inputs = [self._tokens, self._mask, self._positions, self._beams]
        model = ov.Model([op.result(logits)], self._sinks, inputs, "decoder")
        model.set_rt_info(ACTIVATIONS_SCALE, ["runtime_options", "ACTIVATIONS_SCALE_FACTOR"])
        return model

    def _layer(self, state: ov.Node, layer: str) -> ov.Node:
        attended = self._attention(self._normed(state, f"{layer}.attn_norm"), layer)
        state = op.add(state, attended)
        normed = self._normed(state, f"{layer}.ffn_norm")
        gate = op.swish(self._linear(normed, f"{layer}.ffn_gate"))
        product = op.multiply(gate, self._linear(normed, f"{layer}.ffn_up"))
        return op.add(state, self._linear(product, f"{layer}.ffn_down"))

    def _attention(self, state: ov.Node, layer: str) -> ov.Node:
        decoder = self._decoder
        query = self._heads(state, f"{layer}.attn_q", decoder.heads)
        key = self._heads(state, f"{layer}.attn_k", decoder.kv_heads)
        value = self._heads(state, f"{layer}.attn_v", decoder.kv_heads)
        (keys, values), sinks = with_past(
            self._rotated(key), value, self._tokens, self._beams, f"{layer}."
        )
        self._sinks += sinks
        attended = op.scaled_dot_product_attention(
            self._rotated(query), self._for_all(keys), self._for_all(values), self._seen
        )
        joined = op.reshape(
            op.transpose(attended, integers(0, 2, 1, 3)),
            integers(0, 0, decoder.heads * decoder.head_size),
            special_zero=True,
        )
        return self._linear(joined, f"{layer}.attn_output")

    def _heads(self, state: ov.Node, name: str, heads: int) -> ov.Node:
        """Return the features of each head, normed where the model has a norm for them."""
        shape = integers(0, 0, heads, self._decoder.head_size)
        split = op.reshape(self._linear(state, name), shape, special_zero=True)
        if self._weights.has(f"{name}_norm.weight"):
            split = self._normed(split, f"{name}_norm")
        return op.transpose(split, integers(0, 2, 1, 3))

    def _for_all(self, cache: ov.Node) -> ov.Node:
        """Repeat the heads of keys or values for all heads of queries that share them."""
        decoder = self._decoder
        if decoder.heads == decoder.kv_heads:
            return cache
        shared = decoder.heads // decoder.kv_heads
        shape = op.concat(
            [self._batch, integers(decoder.kv_heads, shared, 1, decoder.head_size)], 0
        )
        repeated = op.broadcast(
            op.unsqueeze(cache, integers(2)), shape, broadcast_spec="BIDIRECTIONAL"
        )
        whole = integers(0, decoder.heads, -1, decoder.head_size)
        return op.reshape(repeated, whole, special_zero=True)

    def _rotate_by(self) -> tuple[ov.Node, ov.Node]:
        """Return cosine and sine of what each token's position turns each feature by."""
        frequencies = op.constant(self._decoder.frequencies.reshape(1, -1, 1))
        repeated = op.broadcast(
            frequencies, op.concat([self._batch, integers(1, 1)], 0), broadcast_spec="BIDIRECTIONAL"
        )
        positions = op.convert(op.unsqueeze(self._positions, integers(1)), "f32")
        angles = op.transpose(
            op.matmul(repeated, positions, transpose_a=False, transpose_b=False),
            integers(0, 2, 1),
        )
        both = op.concat([angles, angles], -1)
        return op.unsqueeze(op.cos(both), integers(1)), op.unsqueeze(op.sin(both), integers(1))

    def _rotated(self, heads: ov.Node) -> ov.Node:
        cosine, sine = self._rotation
        half, end, axis, step = self._decoder.head_size // 2, 2**63 - 1, integers(3), integers(1)
        second = op.slice(heads, integers(half), integers(end), step, axis)
        first = op.slice(heads, integers(0), integers(half), step, axis)
        minus = op.constant(np.full((1, 1, 1, 1), -1, np.float32))
        turned = op.concat([op.multiply(second, minus), first], -1)
        return op.add(op.multiply(heads, cosine), op.multiply(turned, sine))

    def _may_see(self) -> ov.Node:
        """Return which tokens each one may see: itself and those before it, in one sequence.

        genai puts paged attention in the place of this, which needs no mask.
        """
        axis, first, step = op.constant(1), op.constant(np.int64(0)), op.constant(np.int64(1))
        whole = op.gather(op.shape_of(self._mask), axis, first)
        past = op.subtract(whole, op.gather(op.shape_of(self._tokens), axis, first))
        these = op.unsqueeze(op.range(past, whole, step, "i64"), integers(1))
        before = op.less_equal(op.range(first, whole, step, "i64"), these)
        return op.unsqueeze(before, integers(0, 1))

    def _linear(self, state: ov.Node, name: str) -> ov.Node:
        product = _product(state, self._weights.matrix(f"{name}.weight"))
        if not self._weights.has(f"{name}.bias"):
            return product
        return op.add(product, op.constant(self._weights.vector(f"{name}.bias")))

    def _normed(self, state: ov.Node, name: str) -> ov.Node:
        """Divide by the root of the mean of squares, over the last axis."""
        squares = op.power(state, op.constant(np.float32(2)))
        mean = op.reduce_mean(squares, integers(-1), keep_dims=True)
        root = op.sqrt(op.add(mean, op.constant(np.float32(self._decoder.epsilon))))
        normed = op.multiply(state, op.divide(op.constant(np.float32(1)), root))
        return op.multiply(normed, op.constant(self._weights.vector(f"{name}.weight")))


def _product(state: ov.Node, matrix: ov.Node) -> ov.Node:
    return op.matmul(state, matrix, transpose_a=False, transpose_b=True)


def tensors_of(decoder: Decoder) -> tuple[set[str], set[str]]:
    """Return the names of tensors that a model must have, and of those that it may have."""
    parts = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    norms = ("attn_norm", "ffn_norm")
    required, optional = {"token_embd.weight", "output_norm.weight"}, {"output.weight"}
    for layer, part in itertools.product(range(decoder.layers), (*parts, *norms)):
        required.add(f"blk.{layer}.{part}.weight")
    for layer, part in itertools.product(range(decoder.layers), parts):
        optional.add(f"blk.{layer}.{part}.bias")
    for layer, part in itertools.product(range(decoder.layers), ("attn_q", "attn_k")):
        optional.add(f"blk.{layer}.{part}_norm.weight")
    return required, optional
