"""What a GGUF file says about the shape of its model: a decoder as Llama's and Qwen's are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ovchat_server.conversion.errors import ConversionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from ovchat_server.conversion.gguf_file import GgufFile

# Architectures, and whether their query and key have the two halves of a rotation in turn, as
# llama.cpp has Llama's: the graph rotates first halves with second ones.
INTERLEAVED = {"llama": True, "qwen2": False, "qwen3": False}
ROPE_FACTORS = "rope_freqs.weight"
DEFAULT_ROPE_BASE = 10_000.0


@dataclass(frozen=True, slots=True)
class Decoder:
    """The shape of a model.

    Attributes:
        layers: How many there are.
        heads: Of queries.
        kv_heads: Of keys and values.
        head_size: Features of each.
        context_length: Tokens that it was made for.
        epsilon: Added to the variance by which activations are divided.
        frequencies: Radians by which each pair of features turns from token to token.
        interleaved: See INTERLEAVED.
    """

    layers: int
    heads: int
    kv_heads: int
    head_size: int
    context_length: int
    epsilon: float
    frequencies: NDArray[np.float32]
    interleaved: bool


def read_decoder(file: GgufFile) -> Decoder:
    """Read the shape of the model in a file.

    Raises:
        ConversionError: Its architecture is not known, or it is a variant that is not.
    """
    architecture = file.architecture
    if architecture not in INTERLEAVED:
        raise _unknown(file, f"architecture {architecture!r}", INTERLEAVED)
    if file.get(f"{architecture}.expert_count", int, 0):
        raise ConversionError(f"{file.path}: models of several experts cannot be read")
    heads = file.required(f"{architecture}.attention.head_count", int)
    head_size = file.get(
        f"{architecture}.attention.key_length",
        int,
        file.required(f"{architecture}.embedding_length", int) // heads,
    )
    rotated = file.get(f"{architecture}.rope.dimension_count", int, head_size)
    values = file.get(f"{architecture}.attention.value_length", int, head_size)
    if (rotated, values) != (head_size, head_size):
        raise ConversionError(
            f"{file.path}: heads of {head_size} features of which {rotated} are rotated, with "
            f"values of {values}, cannot be read"
        )
    return Decoder(
        layers=file.required(f"{architecture}.block_count", int),
        heads=heads,
        kv_heads=file.get(f"{architecture}.attention.head_count_kv", int, heads),
        head_size=head_size,
        context_length=file.required(f"{architecture}.context_length", int),
        epsilon=file.required(f"{architecture}.attention.layer_norm_rms_epsilon", float),
        frequencies=_frequencies(file, head_size),
        interleaved=INTERLEAVED[architecture],
    )


def _frequencies(file: GgufFile, head_size: int) -> NDArray[np.float32]:
    prefix = f"{file.architecture}.rope."
    base = file.get(f"{prefix}freq_base", float, DEFAULT_ROPE_BASE)
    frequencies = base ** -(np.arange(0, head_size, 2, dtype=np.float64) / head_size)
    scaling = file.get(f"{prefix}scaling.type", str, "none")
    if scaling == "linear":
        frequencies /= file.required(f"{prefix}scaling.factor", float)
    elif scaling != "none":
        raise _unknown(file, f"RoPE scaling {scaling!r}", ("linear", "none"))
    # Llama 3's longer context, worked out for each frequency by who wrote the file.
    if factors := file.tensors.get(ROPE_FACTORS):
        frequencies /= factors.data.astype(np.float64)
    return frequencies.astype(np.float32)


def _unknown(file: GgufFile, what: str, known: Iterable[str]) -> ConversionError:
    return ConversionError(
        f"{file.path}: its {what} cannot be read, only {', '.join(sorted(known))}"
    )
