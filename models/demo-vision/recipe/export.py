"""Exports trained weights to OpenVINO IR, with all that a server reads.

python -m models.demo-vision.recipe.export --weights build/demo-vision
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from optimum.exporters.openvino import main_export

from models.demo.recipe.export import export_tokenizer, save_graph

from .conversations import MODEL
from .preprocessing import write_configuration

GRAPHS = (
    "openvino_language_model.xml",
    "openvino_text_embeddings_model.xml",
    "openvino_vision_embeddings_model.xml",
)


def export_model(weights: Path, output: Path) -> None:
    """Converts the weights to the three graphs."""
    with tempfile.TemporaryDirectory() as scratch:
        ready = shutil.copytree(weights, Path(scratch) / "weights")
        # The exporter reads it, and copies it beside the graphs.
        write_configuration(ready)
        main_export(
            str(ready),
            output=Path(scratch) / "exported",
            task="image-text-to-text",
            library_name="transformers",
            convert_tokenizer=False,
        )
        for name in GRAPHS:
            save_graph(Path(scratch) / "exported" / name, output)


def write_configurations(weights: Path, output: Path) -> None:
    """Writes the configuration without traces of the build."""
    config = _without_traces(json.loads((weights / "config.json").read_text(encoding="utf-8")))
    text = config["text_config"]
    generation = {
        # Greedy unless a request says otherwise; either token ends an answer.
        "do_sample": False,
        "eos_token_id": [text["eos_token_id"], text["pad_token_id"]],
        "pad_token_id": text["pad_token_id"],
    }
    for name, content in (("config.json", config), ("generation_config.json", generation)):
        (output / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    write_configuration(output)


def _without_traces(config: dict[str, object]) -> dict[str, object]:
    return {
        key: _without_traces(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if not key.startswith("_") and value is not None
    }


def main() -> None:
    """Export into the model's folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="what train.py wrote")
    parser.add_argument(
        "--output", type=Path, default=MODEL, help="default: the folder above the recipe"
    )
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    export_model(options.weights, options.output)
    export_tokenizer(options.weights, options.output)
    write_configurations(options.weights, options.output)
    template = "chat_template.jinja"
    if options.output.resolve() != MODEL:
        shutil.copyfile(MODEL / template, options.output / template)


if __name__ == "__main__":
    main()
