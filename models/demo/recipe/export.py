"""Exports trained weights to OpenVINO IR: `python -m models.demo.recipe.export --weights DIR`.

Writes everything a server loads next to the chat template: the model with 16-bit weights, the
tokenizer for OpenVINO and for Hugging Face, and the configuration.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import openvino
from openvino_tokenizers import convert_tokenizer
from optimum.exporters.openvino import main_export
from transformers import PreTrainedTokenizerFast

from .template import MODEL_DIR
from .train import CONTEXT

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def export_model(weights: Path, output: Path) -> None:
    """Converts the weights to openvino_model.xml and .bin."""
    with tempfile.TemporaryDirectory() as scratch:
        main_export(
            str(weights),
            output=scratch,
            task="text-generation-with-past",
            library_name="transformers",
            convert_tokenizer=False,
        )
        save_graph(Path(scratch) / "openvino_model.xml", output)


def save_graph(exported: Path, output: Path) -> None:
    """Saves a graph with 16-bit weights, without what the exporter notes about itself."""
    model = openvino.Core().read_model(exported)
    for key in list(model.get_rt_info().keys()):
        if key != "runtime_options":
            del model.get_rt_info()[key]
    openvino.save_model(model, output / exported.name, compress_to_fp16=True)


def export_tokenizer(weights: Path, output: Path) -> None:
    """Converts the tokenizer, and copies its Hugging Face files."""
    for name in TOKENIZER_FILES:
        shutil.copyfile(weights / name, output / name)
    converted = convert_tokenizer(
        PreTrainedTokenizerFast.from_pretrained(weights), with_detokenizer=True
    )
    for model, name in zip(converted, ("openvino_tokenizer", "openvino_detokenizer"), strict=True):
        openvino.save_model(model, output / f"{name}.xml", compress_to_fp16=False)


def write_configuration(weights: Path, output: Path) -> None:
    """Writes config.json and generation_config.json without traces of the build."""
    config = json.loads((weights / "config.json").read_text(encoding="utf-8"))
    config = {
        key: value for key, value in config.items() if not key.startswith("_") and value is not None
    }
    config["max_position_embeddings"] = CONTEXT
    generation = {
        # Greedy unless a request says otherwise; either token ends an answer.
        "do_sample": False,
        "eos_token_id": [config["eos_token_id"], config["pad_token_id"]],
        "pad_token_id": config["pad_token_id"],
    }
    for name, content in (("config.json", config), ("generation_config.json", generation)):
        (output / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Exports weights and tokenizer into the model's folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="what train.py wrote")
    parser.add_argument(
        "--output", type=Path, default=MODEL_DIR, help="default: the folder above the recipe"
    )
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    export_model(options.weights, options.output)
    export_tokenizer(options.weights, options.output)
    write_configuration(options.weights, options.output)
    if options.output.resolve() != MODEL_DIR:
        shutil.copyfile(MODEL_DIR / "chat_template.jinja", options.output / "chat_template.jinja")


if __name__ == "__main__":
    main()
