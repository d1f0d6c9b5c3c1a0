"""Make these models: tiny, with random weights, one of each family of embedding and rerank models.

    pip install '.[demo-model]' sentence-transformers
    python tests/data/pooling/recipe.py [FAMILY ...] [--output tests/data/pooling]

Each is exported by optimum-intel, as people do it; `expected.json` beside it has what
sentence-transformers says, which our answers are compared with. Last, the exported graph itself is
compared with that, in batches with padding. Each run differs a little, as the vocabularies do that
`tokenizers` learns.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino
import reference
from families import FAMILIES, Family
from optimum.exporters.openvino import main_export
from transformers import AutoTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

FOLDER = Path(__file__).parent
# What OpenVINO's f32 may differ from PyTorch's.
TOLERANCE = 1e-5
# They repeat what tokenizer.json says.
LEFT_OUT = ("vocab.txt", "vocab.json", "merges.txt", "added_tokens.json", "special_tokens_map.json")


def save(family: Family, folder: Path) -> None:
    """Write the model as it is published: for PyTorch."""
    tokenizer = family.tokenizer()
    family.model(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for name, value in family.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(value, indent=2) + "\n")


def export(family: Family, source: Path, output: Path) -> None:
    """Write the folder; the export leaves out sentence-transformers' files, people copy them."""
    shutil.rmtree(output, ignore_errors=True)
    main_export(str(source), output, task=family.task, library_name="transformers")
    for name in family.files:
        (output / name).parent.mkdir(exist_ok=True)
        shutil.copy(source / name, output / name)
    for name in LEFT_OUT:
        (output / name).unlink(missing_ok=True)


def expect(name: str, family: Family, source: Path) -> dict[str, Any]:
    """What the model says by sentence-transformers."""
    if name == "qwen3-seq-cls":
        return reference.of_judging_classifier(source)
    if family.task == "feature-extraction":
        return reference.of_embedding(source, family.longest)
    if family.task == "text-classification":
        return reference.of_cross_encoder(source)
    return reference.of_judge(source)


class Exported:
    """The exported graph in f32, on batches padded on the right."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(folder)
        self.tokenizer.padding_side = "right"
        hint = {"INFERENCE_PRECISION_HINT": "f32"}
        self._model = openvino.Core().compile_model(folder / "openvino_model.xml", "CPU", hint)

    def run(self, *texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The output, and the mask."""
        tokens = self.tokenizer(*texts, padding=True, return_tensors="np")
        mask = tokens["attention_mask"]
        tokens["position_ids"] = np.broadcast_to(np.arange(mask.shape[1]), mask.shape)
        tokens["beam_idx"] = np.arange(len(mask), dtype=np.int32)
        names = [each.any_name for each in self._model.inputs]
        return self._model({name: tokens[name] for name in names})[0], mask


def check(name: str, folder: Path) -> float:
    """Compare the exported graph with what is expected: the largest difference."""
    expected = json.loads((folder / "expected.json").read_text())
    exported = Exported(folder)
    if "texts" in expected:
        hidden, mask = exported.run(expected["texts"])
        vectors = {
            "cls": hidden[:, 0],
            "mean": (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True),
            "lasttoken": hidden[np.arange(len(mask)), mask.sum(1) - 1],
        }
        return max(np.abs(vectors[mode] - expected["vectors"][mode]).max() for mode in vectors)
    documents = expected["documents"]
    if name.startswith("qwen3"):
        logits, mask = exported.run([reference.rerank_prompt(document) for document in documents])
    else:
        logits, mask = exported.run([expected["query"]] * len(documents), documents)
    if logits.ndim == 3:
        answers = exported.tokenizer.convert_tokens_to_ids(["no", "yes"])
        last = logits[np.arange(len(mask)), mask.sum(1) - 1][:, answers]
        logits = last[:, 1] - last[:, 0]
    logits = logits.reshape(-1)
    scores = logits if name == "bert-rerank" else 1 / (1 + np.exp(-logits))
    return np.abs(scores - expected["scores"]).max()


def make(name: str, output: Path) -> None:
    """Make one folder."""
    family = FAMILIES[name]
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory)
        save(family, source)
        expected = expect(name, family, source)
        export(family, source, output)
    reference.write(output / "expected.json", expected)
    difference = check(name, output)
    print(f"{name}: the exported graph differs by at most {difference:.1e}")
    assert difference < TOLERANCE


def main() -> None:
    """Make the folders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=[*FAMILIES])
    parser.add_argument("--output", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    for name in arguments.families:
        make(name, arguments.output / name)


if __name__ == "__main__":
    main()
