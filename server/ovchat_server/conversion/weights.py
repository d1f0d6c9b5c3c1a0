"""The weights of a GGUF file in the forms that OpenVINO multiplies as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import gguf
import numpy as np
import openvino as ov
from gguf import GGMLQuantizationType as Kind
from numpy.typing import NDArray
from openvino import opset13 as op

from ovchat_server.conversion.errors import ConversionError
from ovchat_server.conversion.weight_form import WeightForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gguf.gguf_reader import ReaderTensor

    from ovchat_server.conversion.decoder import Decoder
    from ovchat_server.conversion.gguf_file import GgufFile

GROUP = 32
MOST_8_BITS = 127
# Weights that are 32-bit numbers at a time: some 256 MB of them.
WEIGHTS_AT_A_TIME = 1 << 26
ROTATED = ("attn_q.weight", "attn_k.weight", "attn_q.bias", "attn_k.bias")


class GgufWeights:
    """The weights of a file; see decoder_graph.Weights."""

    def __init__(
        self,
        file: GgufFile,
        decoder: Decoder,
        form: WeightForm,
        progress: Callable[[float], None] = lambda _share: None,
    ) -> None:
        """Read from a file.

        Args:
            file: The file.
            decoder: The shape of its model.
            form: What to keep matrices in.
            progress: Is told the share of the weights that were read.

        Raises:
            ConversionError: It has weights in a form that cannot be read.
        """
        self._tensors = file.tensors
        self._decoder = decoder
        self._form = form
        self._progress = progress
        self._all = sum(tensor.n_elements for tensor in file.tensors.values())
        self._read = 0
        for tensor in file.tensors.values():
            try:
                gguf.dequantize(tensor.data[:1], tensor.tensor_type)
            except (NotImplementedError, ValueError) as error:
                raise ConversionError(
                    f"{file.path}: {tensor.name} is in {tensor.tensor_type.name}, which cannot be "
                    "read"
                ) from error

    def has(self, name: str) -> bool:
        """Return whether there is a matrix or a vector of that name."""
        return name in self._tensors

    def vector(self, name: str) -> NDArray[np.float32]:
        """Return a vector."""
        tensor = self._tensors[name]
        return gguf.dequantize(self._rows(tensor), tensor.tensor_type).astype(np.float32)

    def matrix(self, name: str) -> ov.Node:
        """Return a matrix, as a node that gives its numbers in 32 bits."""
        tensor = self._tensors[name]
        pack = _PACKED[self._form].get(tensor.tensor_type, _int8)
        node = pack(self._rows(tensor), tensor.tensor_type)
        self._read += tensor.n_elements
        self._progress(self._read / self._all)
        return node

    def _rows(self, tensor: ReaderTensor) -> NDArray[np.generic]:
        """Return the rows of a tensor, in which first halves of rotations precede second ones."""
        if not self._decoder.interleaved or not tensor.name.endswith(ROTATED):
            return tensor.data
        pairs = np.arange(len(tensor.data)).reshape(-1, self._decoder.head_size // 2, 2)
        rows: NDArray[np.generic] = tensor.data[pairs.swapaxes(1, 2).reshape(-1)]
        return rows


def _int8(data: NDArray[np.generic], kind: Kind) -> ov.Node:
    scales, numbers = [], []
    for part in _parts(data):
        values = gguf.dequantize(part, kind).astype(np.float32, copy=False)
        scale = (np.abs(values).max(axis=1, keepdims=True) / MOST_8_BITS).astype(np.float16)
        # What is left of a row that is too small for its scale is nothing.
        divisor = np.where(scale == 0, np.float32(1), scale.astype(np.float32))
        rounded = np.rint(values / divisor).clip(-MOST_8_BITS, MOST_8_BITS)
        scales.append(scale)
        numbers.append(rounded.astype(np.int8))
    whole = op.constant(ov.Tensor(np.concatenate(numbers)))
    scaled = op.multiply(op.convert(whole, "f16"), op.constant(np.concatenate(scales)))
    return op.convert(scaled, "f32")


def _float(data: NDArray[np.generic], kind: Kind) -> ov.Node:
    if kind is Kind.BF16:
        numbers = np.ascontiguousarray(data).view(np.uint16)
        return op.convert(_constant(numbers, numbers.shape, ov.Type.bf16), "f32")
    node = op.constant(np.ascontiguousarray(data))
    return node if kind is Kind.F32 else op.convert(node, "f32")


def _q8_0(data: NDArray[np.generic], _kind: Kind) -> ov.Node:
    blocks = np.ascontiguousarray(data).reshape(-1, 34)
    scales, numbers = blocks[:, :2].copy().view(np.float16), blocks[:, 2:].view(np.int8)
    shape = (len(data), -1, GROUP)
    signed = op.convert(op.constant(np.ascontiguousarray(numbers.reshape(shape))), "f16")
    return _grouped(op.multiply(signed, op.constant(scales.reshape(*shape[:2], 1))), len(data))


def _q4_0(data: NDArray[np.generic], _kind: Kind) -> ov.Node:
    blocks = np.ascontiguousarray(data).reshape(-1, 18)
    scales = blocks[:, :2].copy().view(np.float16)
    # A whole number, as the fast kernels want it.
    zero = np.full((len(data), len(blocks) // len(data), 1), 8, np.uint8)
    zeros = op.convert(_constant(_packed(zero), zero.shape, ov.Type.u4), "f16")
    return _4_bits(_in_order(blocks[:, 2:]), scales, zeros, len(data))


def _q4_1(data: NDArray[np.generic], _kind: Kind) -> ov.Node:
    blocks = np.ascontiguousarray(data).reshape(-1, 20)
    scales, least = (blocks[:, part].copy().view(np.float16) for part in (slice(2), slice(2, 4)))
    return _4_bits_from(_in_order(blocks[:, 4:]), scales.astype(np.float32), least, len(data))


def _q4_k(data: NDArray[np.generic], _kind: Kind) -> ov.Node:
    blocks = np.ascontiguousarray(data).reshape(-1, 144)
    of_scales, of_least = (
        blocks[:, part].copy().view(np.float16) for part in (slice(2), slice(2, 4))
    )
    scales, least = gguf.quants.Q4_K.get_scale_min(blocks[:, 4:16])
    numbers = blocks[:, 16:].reshape(-1, 4, 1, 32) >> np.array([0, 4], np.uint8).reshape(1, 1, 2, 1)
    return _4_bits_from(
        (numbers & np.uint8(15)).reshape(-1, GROUP),
        (of_scales.astype(np.float32) * scales).reshape(-1, 1),
        -(of_least.astype(np.float32) * least).reshape(-1, 1),
        len(data),
    )


def _4_bits_from(
    numbers: NDArray[np.uint8], scales: NDArray[np.float32], least: NDArray[np.generic], rows: int
) -> ov.Node:
    """Return scale * number + least, for groups of which the least number is not a whole one."""
    # A group of equal numbers has no scale: they are all the least.
    flat = scales == 0
    numbers = np.where(flat, np.uint8(0), numbers)
    scales = np.where(flat, np.float32(1), scales)
    zeros = (-least.astype(np.float32) / scales).astype(np.float16)
    zeros_node = op.constant(zeros.reshape(rows, -1, 1))
    return _4_bits(numbers, scales.astype(np.float16), zeros_node, rows)


def _4_bits(
    numbers: NDArray[np.uint8], scales: NDArray[np.float16], zeros: ov.Node, rows: int
) -> ov.Node:
    shape = (rows, len(numbers) // rows, GROUP)
    node = op.convert(_constant(_packed(numbers), shape, ov.Type.u4), "f16")
    above = op.subtract(node, zeros)
    return _grouped(op.multiply(above, op.constant(scales.reshape(rows, -1, 1))), rows)


def _grouped(groups: ov.Node, rows: int) -> ov.Node:
    """Return a matrix of rows that are in groups, in 32 bits."""
    shape = op.constant(np.array([rows, -1], np.int64))
    return op.convert(op.reshape(groups, shape, special_zero=False), "f32")


def _in_order(bytes_: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the numbers of blocks that have their second half in the higher bits."""
    return np.concatenate([bytes_ & np.uint8(15), bytes_ >> np.uint8(4)], axis=1)


def _packed(numbers: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return two numbers a byte, the first in the lower bits."""
    pairs = numbers.reshape(-1)
    if len(pairs) % 2:
        pairs = np.append(pairs, np.uint8(0))
    return np.ascontiguousarray(pairs[::2] | (pairs[1::2] << 4))


def _constant(content: NDArray[np.generic], shape: Sequence[int], kind: ov.Type) -> ov.Node:
    """Return a constant of a type that numpy does not have, from its bytes."""
    # A tensor that is made of an array of another type does not keep the array.
    tensor = ov.Tensor(kind, ov.Shape(shape))
    tensor.data.view(np.uint8).reshape(-1)[:] = content.view(np.uint8).reshape(-1)
    return op.constant(tensor)


def _parts(data: NDArray[np.generic]) -> Iterator[NDArray[np.generic]]:
    # A byte is up to two weights.
    rows = max(WEIGHTS_AT_A_TIME // (2 * data.shape[1]), 1)
    for start in range(0, len(data), rows):
        yield data[start : start + rows]


_Pack = Callable[[NDArray[np.generic], Kind], ov.Node]
# By what the file has them in; others become 8 bits.
_PACKED: Mapping[WeightForm, Mapping[Kind, _Pack]] = {
    WeightForm.AUTO: {Kind.Q4_0: _q4_0},
    WeightForm.INT8: {},
    WeightForm.FILE: {
        Kind.F32: _float,
        Kind.F16: _float,
        Kind.BF16: _float,
        Kind.Q8_0: _q8_0,
        Kind.Q4_0: _q4_0,
        Kind.Q4_1: _q4_1,
        Kind.Q4_K: _q4_k,
    },
}
