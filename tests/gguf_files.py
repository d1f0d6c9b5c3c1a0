"""Small GGUF files of random weights, with the demo model's tokenizer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf import TokenType

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEMO = ROOT / "models/demo"
LAYERS, HEADS, KV_HEADS, HEAD_SIZE = 2, 4, 2, 64
SIZE, INNER, CONTEXT = HEADS * HEAD_SIZE, 512, 512
# Of each layer: rows and columns.
MATRICES = {
    "attn_q": (HEADS * HEAD_SIZE, SIZE),
    "attn_k": (KV_HEADS * HEAD_SIZE, SIZE),
    "attn_v": (KV_HEADS * HEAD_SIZE, SIZE),
    "attn_output": (SIZE, HEADS * HEAD_SIZE),
    "ffn_gate": (INNER, SIZE),
    "ffn_up": (INNER, SIZE),
    "ffn_down": (SIZE, INNER),
}
BIASES = ("attn_q", "attn_k", "attn_v")
HEAD_NORMS = ("attn_q_norm", "attn_k_norm")

Tensors = dict[str, np.ndarray[Any, Any]]


def random_tensors(architecture: str) -> Tensors:
    """Weights with what the architecture has."""
    random = np.random.default_rng(7)

    def some(*shape: int, scale: float, mean: float = 0) -> np.ndarray[Any, Any]:
        return (mean + scale * random.standard_normal(shape)).astype(np.float32)

    tokenizer = json.loads((DEMO / "tokenizer.json").read_bytes())
    tokens = len(tokenizer["model"]["vocab"]) + len(tokenizer["added_tokens"])
    tensors = {"token_embd": some(tokens, SIZE, scale=0.3)}
    for layer in range(LAYERS):
        parts = {name: some(*shape, scale=0.15) for name, shape in MATRICES.items()}
        parts |= {name: some(SIZE, scale=0.1, mean=1) for name in ("attn_norm", "ffn_norm")}
        if architecture == "qwen3":
            parts |= {name: some(HEAD_SIZE, scale=0.1, mean=1) for name in HEAD_NORMS}
        tensors |= {f"blk.{layer}.{name}.weight": values for name, values in parts.items()}
        if architecture == "qwen2":
            biases = {name: some(MATRICES[name][0], scale=0.3) for name in BIASES}
            tensors |= {f"blk.{layer}.{name}.bias": values for name, values in biases.items()}
    tensors["token_embd.weight"] = tensors.pop("token_embd")
    tensors["output_norm.weight"] = some(SIZE, scale=0.1, mean=1)
    return tensors


def write_gguf(
    path: Path,
    architecture: str = "llama",
    kind: Kind = Kind.F16,
    fields: Mapping[str, Any] | None = None,
    tensors: Tensors | None = None,
) -> Path:
    """A file with `tensors`, of which matrices are of a kind; a field that is None is left out."""
    writer = gguf.GGUFWriter(path, architecture)
    numbers: dict[str, Any] = {
        f"{architecture}.block_count": LAYERS,
        f"{architecture}.context_length": CONTEXT,
        f"{architecture}.embedding_length": SIZE,
        f"{architecture}.feed_forward_length": INNER,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": KV_HEADS,
        f"{architecture}.attention.key_length": HEAD_SIZE,
        f"{architecture}.attention.value_length": HEAD_SIZE,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{architecture}.rope.freq_base": 10_000.0,
        "general.file_type": int(gguf.LlamaFileType.MOSTLY_Q8_0),
        **_tokenizer(),
        **(fields or {}),
    }
    for key, value in numbers.items():
        if value is not None:
            _add(writer, key, value)
    for name, values in (tensors or random_tensors(architecture)).items():
        if values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tokenizer() -> dict[str, Any]:
    tokenizer = json.loads((DEMO / "tokenizer.json").read_bytes())
    config = json.loads((DEMO / "tokenizer_config.json").read_bytes())
    added = {item["content"]: item for item in tokenizer["added_tokens"]}
    tokens = {**tokenizer["model"]["vocab"], **{text: item["id"] for text, item in added.items()}}
    kinds = {
        text: TokenType.CONTROL if item["special"] else TokenType.USER_DEFINED
        for text, item in added.items()
    }
    listed = sorted(tokens, key=lambda text: tokens[text])
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": listed,
        "tokenizer.ggml.token_type": [int(kinds.get(text, TokenType.NORMAL)) for text in listed],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in tokenizer["model"]["merges"]],
        "tokenizer.ggml.eos_token_id": tokens[config["eos_token"]],
        "tokenizer.chat_template": (DEMO / "chat_template.jinja").read_text(),
    }


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case _:
            writer.add_array(key, value)
