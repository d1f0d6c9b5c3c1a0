"""Writes the folder that is served, from a GGUF file."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import openvino as ov

from ovchat_server.conversion.decoder import ROPE_FACTORS, read_decoder
from ovchat_server.conversion.decoder_graph import decoder_graph, tensors_of
from ovchat_server.conversion.errors import ConversionError
from ovchat_server.conversion.gguf_file import GgufFile
from ovchat_server.conversion.tokenizer_files import TokenizerFiles, write_json
from ovchat_server.conversion.weights import GgufWeights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ovchat_server.conversion.decoder import Decoder
    from ovchat_server.conversion.weight_form import WeightForm

# Named in errors, of all that are missing or not known.
FEW = 3
# For graph and tokenizer, besides a byte for each weight: most forms take less.
ROOM = 64 << 20


def write_folder(
    path: Path, folder: Path, form: WeightForm, progress: Callable[[float], None]
) -> None:
    """Write a GGUF file's model into an empty folder.

    Args:
        path: The file.
        folder: The folder.
        form: What to keep weights in.
        progress: Is told the share of the weights that were read.

    Raises:
        ConversionError: The file is damaged, or holds a model that cannot be read.
        OSError: The folder cannot be written.
    """
    file = GgufFile(path)
    decoder = read_decoder(file)
    _check_tensors(file, decoder)
    tokenizer = TokenizerFiles(file)
    _check_room(file, folder)
    model = decoder_graph(decoder, GgufWeights(file, decoder, form, progress))
    config = {
        "model_type": file.architecture,
        "vocab_size": len(file.tensors["token_embd.weight"].data),
        "max_position_embeddings": decoder.context_length,
        "num_hidden_layers": decoder.layers,
        "num_attention_heads": decoder.heads,
        "num_key_value_heads": decoder.kv_heads,
        "head_dim": decoder.head_size,
    }
    write_json(folder / "config.json", config)
    graph = folder / "openvino_model.xml"
    try:
        tokenizer.write(folder)
        ov.save_model(model, graph, compress_to_fp16=False)
    except RuntimeError as error:
        raise ConversionError(f"{path} could not be written as a folder: {error}") from error
    # The model's age is what callers are told.
    age = path.stat().st_mtime
    os.utime(graph, (age, age))


def _check_tensors(file: GgufFile, decoder: Decoder) -> None:
    """Refuse a variant of an architecture, which shows by what it has more or less of."""
    required, optional = tensors_of(decoder)
    found = file.tensors.keys()
    if missing := sorted(required - found):
        raise ConversionError(f"{file.path} lacks {_some(missing)}")
    if others := sorted(found - required - optional - {ROPE_FACTORS}):
        raise ConversionError(
            f"{file.path} is a variant of {file.architecture!r} that cannot be read: it has "
            f"{_some(others)}"
        )


def _check_room(file: GgufFile, folder: Path) -> None:
    """Refuse a disk that is too small, which OpenVINO's own error does not say."""
    tensors = file.tensors.values()
    needed = ROOM + sum(max(tensor.n_elements, tensor.n_bytes) for tensor in tensors)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConversionError(
            f"{file.path} takes up to {needed / 1e9:.1f} GB when it is converted, and "
            f"{folder.parent} has {free / 1e9:.1f} GB free: --cache-dir says where else"
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more
