"""GGUF files as OpenVINO's graphs: the numbers are the file's, the model is the one it was."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import openvino as ov
import openvino_genai as genai
import pytest
from gguf import GGMLQuantizationType as Kind

from ovchat_server.conversion.decoder import read_decoder
from ovchat_server.conversion.folder import write_folder
from ovchat_server.conversion.gguf_file import GgufFile
from ovchat_server.conversion.weight_form import WeightForm
from ovchat_server.conversion.weights import GgufWeights
from tests.gguf_files import HEAD_SIZE, random_tensors, write_gguf

if TYPE_CHECKING:
    from pathlib import Path

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
TOKENS = np.random.default_rng(3).integers(0, 1500, (1, 40))
FACTOR = 2.0


def logits(graph: Path, tokens: np.ndarray[Any, Any] = TOKENS, stride: int = 1) -> Any:
    """The logits of all tokens; positions are `stride` apart."""
    compiled = ov.Core().compile_model(graph, "CPU", EXACT)
    inputs = {
        "input_ids": tokens,
        "attention_mask": np.ones((1, tokens.size), np.int64),
        "position_ids": stride * np.arange(tokens.size)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    return compiled.create_infer_request().infer(inputs)["logits"]


def converted(file: Path, form: WeightForm = WeightForm.FILE) -> Path:
    folder = file.with_suffix(f".{form}")
    folder.mkdir()
    write_folder(file, folder, form, lambda _share: None)
    return folder / "openvino_model.xml"


@pytest.mark.parametrize("kind", [Kind.Q8_0, Kind.Q4_0])
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_a_model_is_what_genais_own_reader_makes_of_it(
    tmp_path: Path, architecture: str, kind: Kind
) -> None:
    """In forms of which it rounds nothing."""
    file = write_gguf(tmp_path / "x.gguf", architecture, kind)
    theirs = tmp_path / "theirs/x.gguf"
    theirs.parent.mkdir()
    shutil.copy(file, theirs)
    genai.LLMPipeline(theirs, "CPU", enable_save_ov_model=True)

    expected = logits(theirs.with_name("openvino_model.xml"))

    np.testing.assert_allclose(logits(converted(file)), expected, atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", [Kind.Q4_1, Kind.Q5_0, Kind.BF16, Kind.F32])
def test_a_model_in_8_bits_answers_nearly_as_in_32(tmp_path: Path, kind: Kind) -> None:
    file = write_gguf(tmp_path / "x.gguf", "qwen3", kind)
    read = {
        name: gguf.dequantize(tensor.data, tensor.tensor_type)
        for name, tensor in GgufFile(file).tensors.items()
    }
    whole = write_gguf(tmp_path / "whole.gguf", "qwen3", Kind.F32, tensors=read)

    expected = logits(converted(whole))
    close = logits(converted(file, WeightForm.INT8))

    assert np.sqrt(np.mean((close - expected) ** 2)) < 0.05 * expected.std()


@pytest.mark.parametrize("form", WeightForm)
@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q4_K", "Q5_K", "Q6_K", "Q8_0", "F16", "BF16"])
def test_matrices_hold_the_numbers_of_the_file(tmp_path: Path, kind: str, form: WeightForm) -> None:
    blocks = _random_blocks(Kind[kind], 48, 512)
    values = gguf.dequantize(blocks, Kind[kind])
    file = write_gguf(tmp_path / "x.gguf")
    opened = GgufFile(file)
    tensor = opened.tensors["blk.0.ffn_down.weight"]
    opened.tensors["some"] = tensor._replace(data=blocks, tensor_type=Kind[kind], name="some")

    node = GgufWeights(opened, read_decoder(opened), form).matrix("some")
    model = ov.Model([node], [], "matrix")
    held = next(iter(ov.Core().compile_model(model, "CPU", EXACT)({}).values()))

    # Of the file's own form all but the last bits of 16; of 8 bits half a step of the row.
    forms = {WeightForm.FILE: kind not in ("Q5_K", "Q6_K"), WeightForm.AUTO: kind == "Q4_0"}
    kept = forms.get(form, False)
    most = np.abs(values).max(axis=1, keepdims=True)
    assert (np.abs(held - values) <= most * (2e-3 if kept else 0.51 / 127)).all()


def _random_blocks(kind: Kind, rows: int, columns: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(1)
    values = random.standard_normal((rows, columns)).astype(np.float32)
    # Numbers that are all the same have no scale.
    values[0, :256] = 1.5
    try:
        return gguf.quants.quantize(values, kind)
    except NotImplementedError:
        # Any bytes are blocks, but for the 16-bit numbers by which they are scaled.
        block, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, (rows * columns // block, size)).astype(np.uint8)
        scale = np.array([0.02, 0.01], np.float16).view(np.uint8)
        if kind is Kind.Q6_K:
            blocks[:, -2:] = scale[:2]
        else:
            blocks[:, :4] = scale
        return blocks.reshape(rows, -1)


@pytest.mark.parametrize("factors", [True, False])
def test_slower_rotations_stretch_positions(tmp_path: Path, *, factors: bool) -> None:
    """By a factor for each frequency, as Llama 3 has them, or by one for all."""
    plain = write_gguf(tmp_path / "plain.gguf")
    if factors:
        more = {"rope_freqs.weight": np.full(HEAD_SIZE // 2, FACTOR, np.float32)}
        slower = write_gguf(tmp_path / "x.gguf", tensors={**random_tensors("llama"), **more})
    else:
        scaling = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": FACTOR}
        slower = write_gguf(tmp_path / "x.gguf", fields=scaling)

    stretched = logits(converted(slower), stride=int(FACTOR))

    np.testing.assert_allclose(stretched, logits(converted(plain)), atol=1e-3)
