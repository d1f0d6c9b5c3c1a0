"""A copy of a model's folder whose graph calls us with the logits.

genai loads models from folders only, and has no hook at the logits. So it gets another folder: the
graph with two more nodes, and links to all other files. The model's own folder is not changed, and
no weights are read or copied.

Of a vision model, the language model also takes rows with columns of ours (embedding_rows), and
the embeddings of text have them. Its encoder of images is left out: images are encoded elsewhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
from openvino import opset13 as op

from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.embedding_rows import (
    INPUTS,
    RowFormat,
    insert_answer_rows,
    insert_prompt_rows,
    row_format,
)
from ovchat_server.engine.genai.graph_parts import integers
from ovchat_server.engine.genai.logits_hook import insert_logits_hook
from ovchat_server.engine.genai.model_graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator

GRAPH = "openvino_model.xml"
# Of vision models.
LANGUAGE_MODEL = "openvino_language_model.xml"
TEXT_EMBEDDINGS = "openvino_text_embeddings_model.xml"
IMAGE_EMBEDDINGS = "openvino_vision_embeddings_model"
# Of the change to graphs: folders that were kept by another version are not used.
VERSION = "3"
PATCH = 14


@dataclass(frozen=True, slots=True)
class HookedModel:
    """A folder to load instead of a model's own.

    Attributes:
        rows: The rows that it takes; None where it takes tokens.
    """

    path: str
    rows: RowFormat | None = None


@contextlib.contextmanager
def hooked_model(path: str, device: str, cache: str = "") -> Iterator[HookedModel | None]:
    """Yield a folder to load instead of `path`; None where the model cannot be hooked.

    Only the CPU plugin runs operations in Python, and genai recognizes only graphs that end in a
    product of matrices. The folder is deleted when the context is left, unless there is a cache.

    Args:
        path: The model's folder.
        device: OpenVINO's name of the device.
        cache: OpenVINO's CACHE_DIR, where it keeps compiled models by the names of their folders.
            The folder is kept there, too, or each start would add a compiled model. "": there is
            none.

    Raises:
        ModelLoadError: It is a vision model that cannot be served.
    """
    folder = Path(path).resolve()
    rows = _rows(folder, device) if (folder / LANGUAGE_MODEL).is_file() else None
    if device != "CPU":
        yield None
        return
    with contextlib.ExitStack() as stack:
        if cache:
            place = Path(cache).resolve() / f"ovchat-{_name(folder)}"
            there = place.is_dir() or _keep(place, folder, rows)
        else:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ovchat-")))
            there = _fill(place, folder, rows)
        if rows and not there:
            # genai would take none of the tokens that it gets instead.
            raise ModelLoadError("its language model does not end in a product of matrices")
        yield HookedModel(str(place), rows) if there else None


def _rows(folder: Path, device: str) -> RowFormat:
    """Return the rows that a vision model takes.

    Raises:
        ModelLoadError: It cannot be served.
    """
    if device != "CPU":
        raise ModelLoadError(f"set device to CPU, not {device!r}: vision models run on no other")
    try:
        graph = Graph(folder / LANGUAGE_MODEL)
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ET.ParseError, ValueError) as error:
        raise ModelLoadError(f"export or copy {folder} anew: {error}") from error
    if others := sorted(graph.parameters.keys() - INPUTS):
        needed = ", ".join(others)
        raise ModelLoadError(
            f"models of this family cannot be served: its language model needs {needed}"
        )
    # Otherwise genai multiplies all that rows hold.
    return row_format(graph, config.get("scale_emb", 1))


def _fill(place: Path, folder: Path, rows: RowFormat | None) -> bool:
    """Fill an empty folder with what is to be loaded; return whether the model can be hooked."""
    try:
        changed = _hooked(folder) if rows is None else _with_rows(folder, rows)
    except (OSError, ET.ParseError, ValueError):
        # genai's own error says what is wrong with it.
        return False
    if changed is None:
        return False
    for name, graph in changed.items():
        graph.write(place / name)
    if rows is not None:
        _leave_out_encoder(place, rows)
    for file in folder.iterdir():
        left_out = rows is not None and file.name.startswith(IMAGE_EMBEDDINGS)
        if not (left_out or (place / file.name).exists()):
            (place / file.name).symlink_to(file)
    return True


def _hooked(folder: Path) -> dict[str, Graph] | None:
    """Return the changed graphs of a model, by their files; None where it cannot be hooked."""
    graph = Graph(folder / GRAPH)
    parameters = graph.parameters
    if not parameters.keys() >= {"input_ids", "position_ids"}:
        return None
    hooked = insert_logits_hook(graph, parameters["input_ids"], parameters["position_ids"])
    return {GRAPH: graph} if hooked else None


def _with_rows(folder: Path, rows: RowFormat) -> dict[str, Graph] | None:
    """Return the same of a vision model."""
    language, texts = Graph(folder / LANGUAGE_MODEL), Graph(folder / TEXT_EMBEDDINGS)
    told = insert_prompt_rows(language, rows)
    insert_answer_rows(texts, rows)
    hooked = insert_logits_hook(language, told, language.parameters["position_ids"])
    return {LANGUAGE_MODEL: language, TEXT_EMBEDDINGS: texts} if hooked else None


def _leave_out_encoder(place: Path, rows: RowFormat) -> None:
    """Write an encoder that is loaded and never runs, of the simplest family that genai knows."""
    pixels = op.parameter([-1, 3, -1, -1], np.float32, "pixel_values")
    pixels.output(0).set_names({"pixel_values"})
    mean = op.reduce_mean(pixels, integers(1, 2, 3), keep_dims=True)
    tile = op.tile(op.reshape(mean, integers(0, 1, 1), True), integers(1, 1, rows.width))  # noqa: FBT003
    tile.output(0).set_names({"last_hidden_state"})
    model = ov.Model([op.result(tile)], [pixels], "no encoder")
    ov.save_model(model, place / f"{IMAGE_EMBEDDINGS}.xml")
    config = {
        "model_type": "llava",
        "hidden_size": rows.width,
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


def _keep(kept: Path, folder: Path, rows: RowFormat | None) -> bool:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{kept.name}-", dir=kept.parent) as place:
        if not _fill(Path(place), folder, rows):
            return False
        # Another engine may be doing the same, and what it keeps is as good.
        with contextlib.suppress(OSError):
            Path(place).rename(kept)
    return kept.is_dir()


def _name(folder: Path) -> str:
    """Return a name that changes with anything in the folder, and with VERSION."""
    files = sorted(file for file in folder.iterdir() if file.exists())
    facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr((VERSION, str(folder), facts)).encode()).hexdigest()[:16]
