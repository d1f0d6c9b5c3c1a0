"""GGUF files that cannot be served are refused by the name of what is wrong with them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from ovchat_server.conversion.errors import ConversionError
from ovchat_server.conversion.folder import write_folder
from ovchat_server.conversion.gguf_file import GgufFile
from ovchat_server.conversion.weight_form import WeightForm
from tests.gguf_files import random_tensors, write_gguf

if TYPE_CHECKING:
    from pathlib import Path

A_VECTOR = np.ones(4, np.float32)


def refusal(file: Path) -> str:
    folder = file.parent / "folder"
    folder.mkdir()
    with pytest.raises(ConversionError) as refused:
        write_folder(file, folder, WeightForm.INT8, lambda _share: None)
    assert [*folder.iterdir()] == []
    text = str(refused.value)
    assert str(file) in text
    return text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"split.count": 3}, ["one of 3 parts", "llama-gguf-split --merge"]),
        ({"llama.expert_count": 8}, ["experts"]),
        ({"llama.rope.scaling.type": "yarn"}, ["RoPE scaling 'yarn'", "linear"]),
        ({"llama.rope.dimension_count": 32}, ["32 are rotated"]),
        ({"llama.block_count": None}, ["llama.block_count"]),
        ({"llama.context_length": "long"}, ["llama.context_length", "'long'"]),
        ({"llama.block_count": 3}, ["lacks blk.2.attn_k.weight", "and 6 more"]),
        ({"llama.block_count": 1}, ["variant of 'llama'", "blk.1.attn_k.weight"]),
        ({"tokenizer.ggml.model": "llama"}, ["tokenizer 'llama'", "'gpt2'"]),
        ({"tokenizer.ggml.pre": "viking"}, ["'viking'", "llama-bpe", "qwen2", "smollm"]),
        ({"tokenizer.ggml.pre": None}, ["'default'"]),
        ({"tokenizer.chat_template": None}, ["no chat template"]),
        ({"tokenizer.ggml.tokens": None}, ["tokenizer.ggml.tokens"]),
    ],
)
def test_what_a_file_says_is_refused_by_name(
    tmp_path: Path, fields: dict[str, Any], words: list[str]
) -> None:
    text = refusal(write_gguf(tmp_path / "x.gguf", fields=fields))

    assert [word for word in words if word not in text] == []


def test_other_architectures_are_refused_with_those_that_are_read(tmp_path: Path) -> None:
    text = refusal(write_gguf(tmp_path / "x.gguf", "gemma3"))

    assert "'gemma3' cannot be read, only llama, qwen2, qwen3" in text


def test_what_nobody_would_look_at_is_not_left_out_in_silence(tmp_path: Path) -> None:
    tensors = {**random_tensors("llama"), "blk.0.ffn_gate_inp.weight": A_VECTOR}

    assert "blk.0.ffn_gate_inp.weight" in refusal(write_gguf(tmp_path / "x.gguf", tensors=tensors))


def test_a_form_of_weights_that_is_not_known_is_named(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "x.gguf", kind=Kind.F16)
    tensor = GgufFile(file).tensors["blk.0.ffn_up.weight"]
    content = bytearray(file.read_bytes())
    # In the tensor's description: behind the last of its dimensions.
    at = tensor.field.offset + sum(int(part.nbytes) for part in tensor.field.parts[:4])
    content[at : at + 4] = np.uint32(Kind.I16).tobytes()
    file.write_bytes(content)

    assert "blk.0.ffn_up.weight is in I16" in refusal(file)


@pytest.mark.parametrize("left", [0, 3, 4, 20, 30_000, 100_000, -1])
def test_a_truncated_file_is_said_to_be_one(tmp_path: Path, left: int) -> None:
    file = write_gguf(tmp_path / "x.gguf")
    file.write_bytes(file.read_bytes()[:left])

    what = "not a GGUF file" if 0 <= left < 4 else "cut off or damaged: copy or download it anew"
    assert refusal(file) == f"{file} is {what}"


def test_another_format_is_said_to_be_none(tmp_path: Path) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(b"PK\x03\x04 and so on")

    assert "is not a GGUF file" in refusal(file)


def test_a_disk_that_is_too_small_is_told_before_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=10_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: full)

    text = refusal(write_gguf(tmp_path / "x.gguf"))

    assert "takes up to 0.1 GB" in text
    assert "0.0 GB free: --cache-dir says where else" in text
