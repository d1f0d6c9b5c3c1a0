"""The folder of a vision model in which prompts are rows of embeddings; see embedding_rows."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
from openvino import opset13 as op

from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.embedding_rows import (
    INPUTS,
    insert_answer_rows,
    insert_prompt_rows,
    row_format,
)
from ovchat_server.engine.genai.graph_parts import integers
from ovchat_server.engine.genai.logits_hook import insert_logits_hook
from ovchat_server.engine.genai.model_graph import Graph

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGE_MODEL = "openvino_language_model.xml"
TEXT_EMBEDDINGS = "openvino_text_embeddings_model.xml"
IMAGE_EMBEDDINGS = "openvino_vision_embeddings_model.xml"
PATCH = 14


class VisionFolder:
    """The folder of a vision model.

    Attributes:
        rows: The rows that it takes.
    """

    def __init__(self, folder: Path) -> None:
        """Read the language model and the configuration.

        Raises:
            ModelLoadError: The model cannot be served.
        """
        try:
            self._language = Graph(folder / LANGUAGE_MODEL)
            config = json.loads((folder / "config.json").read_bytes())
        except (OSError, ET.ParseError, ValueError) as error:
            raise ModelLoadError(f"export or copy {folder} anew: {error}") from error
        if others := sorted(self._language.parameters.keys() - INPUTS):
            needed = ", ".join(others)
            raise ModelLoadError(
                f"models of this family cannot be served: its language model needs {needed}"
            )
        self._folder = folder
        # Otherwise genai multiplies all that rows hold.
        self.rows = row_format(self._language, config.get("scale_emb", 1))

    def write(self, place: Path) -> bool:
        """Write the files that are changed; return whether the model can be hooked.

        Called once. The encoder of images is left out: images are encoded elsewhere.

        Raises:
            OSError: A file cannot be read or written.
            ParseError: A file is not XML.
            ValueError: A graph has another form than those of vision models.
        """
        language, texts = self._language, Graph(self._folder / TEXT_EMBEDDINGS)
        told = insert_prompt_rows(language, self.rows)
        insert_answer_rows(texts, self.rows)
        if not insert_logits_hook(language, told, language.parameters["position_ids"]):
            return False
        language.write(place / LANGUAGE_MODEL)
        texts.write(place / TEXT_EMBEDDINGS)
        _write_no_encoder(place, self.rows.width)
        return True


def _write_no_encoder(place: Path, width: int) -> None:
    """Write an encoder that is loaded and never runs, of the simplest family that genai knows."""
    pixels = op.parameter([-1, 3, -1, -1], np.float32, "pixel_values")
    pixels.output(0).set_names({"pixel_values"})
    mean = op.reduce_mean(pixels, integers(1, 2, 3), keep_dims=True)
    tile = op.tile(op.reshape(mean, integers(0, 1, 1), True), integers(1, 1, width))  # noqa: FBT003
    tile.output(0).set_names({"last_hidden_state"})
    model = ov.Model([op.result(tile)], [pixels], "no encoder")
    ov.save_model(model, place / IMAGE_EMBEDDINGS)
    config = {
        "model_type": "llava",
        "hidden_size": width,
        "vision_config": {"patch_size": PATCH},
    }
    pixels_config = {
        "crop_size": {"height": PATCH, "width": PATCH},
        "size": {"shortest_edge": PATCH},
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
    text = json.dumps(pixels_config)
    (place / "preprocessor_config.json").write_text(text, encoding="utf-8")
