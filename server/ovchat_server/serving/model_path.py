"""What keeps a path from being a model's folder, and what to do about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.near_names import did_you_mean_path

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "openvino_model.xml"
# Where sentence-transformers saves it, beside the same model in other formats.
_NESTED = f"openvino/{MODEL}"
# Of vision models, which are several graphs.
LANGUAGE_MODEL = "openvino_language_model.xml"
MODEL_FILE_SUFFIXES = frozenset({".xml", ".bin", ".json", ".jinja"})
_FILES = ("tokenizer.json", "config.json")
_TEXT_EMBEDDINGS = "openvino_text_embeddings_model.xml"
_IMAGE_EMBEDDINGS = "openvino_vision_embeddings_model.xml"
# Of any model in OpenVINO's format, of kinds that are not served, too.
_ANY_MODEL = "openvino_*.xml"
_CHECKPOINTS = ("*.safetensors", "pytorch_model*.bin")
_LFS_POINTER = b"version https://git-lfs"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def folder_fault(path: Path) -> str | None:
    """Return why a path is not the folder of a model, and what to do; None: it may be."""
    try:
        return _fault(path)
    except OSError as error:
        return f"{error.filename} cannot be read: {error.strerror}"


def _fault(path: Path) -> str | None:
    if not path.is_dir():
        return f"there is no folder {path}{_instead_of_nothing(path)}"
    for file in path.iterdir():
        if file.suffix in MODEL_FILE_SUFFIXES and file.is_file():
            # In containers, files are often those of another user.
            file.open("rb").close()
    if graph := model_graph(path) or pooling_graph(path):
        return _fault_inside(path, graph)
    if any(path.glob(_ANY_MODEL)):
        return None
    return f"there is no {MODEL} in {path}{_instead_of_folder(path)}"


def model_graph(path: Path) -> Path | None:
    """Return the graph that generates text, in the folder of a model that does; else None."""
    graphs = (path / name for name in (MODEL, LANGUAGE_MODEL))
    return next((graph for graph in graphs if graph.is_file()), None)


def pooling_graph(path: Path) -> Path | None:
    """Return the graph that makes vectors of texts, in the folder of a model that may; else None.

    It may stand in a folder of its own, as sentence-transformers saves it.
    """
    graphs = (path / name for name in (MODEL, _NESTED))
    return next((graph for graph in graphs if graph.is_file()), None)


def is_vision_model(path: Path) -> bool:
    """Return whether a path is the folder of a model that takes images.

    Without an encoder of images it takes text only.
    """
    try:
        return all((path / name).is_file() for name in (LANGUAGE_MODEL, _IMAGE_EMBEDDINGS))
    except OSError:
        # `folder_fault` says what is wrong.
        return False


def instead_of_file(path: Path) -> str:
    """Return what to give instead of a file that is no model; nothing where that is not known."""
    if path.match(_ANY_MODEL):
        return f"; give its folder: {path.parent}"
    if any(path.match(pattern) for pattern in _CHECKPOINTS):
        return _convert(path.parent)
    return ""


def _fault_inside(path: Path, graph: Path) -> str | None:
    weights = graph.with_suffix(".bin")
    embeddings = (_TEXT_EMBEDDINGS,) if graph.name == LANGUAGE_MODEL else ()
    for file in (weights, *(path / name for name in (*embeddings, *_FILES))):
        if not file.is_file():
            above = path.parent
            if path.name == "openvino" and (above / file.name).is_file():
                return f"there is no {file.name} in {path}; give the folder above: {above}"
            return f"there is no {file.name} in {file.parent}"
    with weights.open("rb") as opened:
        if opened.read(len(_LFS_POINTER)) == _LFS_POINTER:
            return f"{weights} is a pointer of Git LFS: `git lfs pull` fetches what it stands for"
    return None


def _instead_of_nothing(path: Path) -> str:
    if not path.parent.exists() and _HUB_ID.fullmatch(str(path)):
        command = _export(str(path), f"models/{path.name}")
        return f"; a model of Hugging Face is converted first: {command}"
    return did_you_mean_path(path)


def _instead_of_folder(path: Path) -> str:
    if files := sorted(path.glob("*.gguf")):
        return f"; the GGUF file in it has a path of its own: {files[0]}"
    if any(file for pattern in _CHECKPOINTS for file in path.glob(pattern)):
        return _convert(path)
    if models := sorted({str(file.parent) for file in path.glob(f"*/{_ANY_MODEL}")}):
        return f"; the models in it have paths of their own: {', '.join(models)}"
    return f"; such a folder is written by: {_export('ID', str(path))}"


def _convert(path: Path) -> str:
    # The task cannot be seen in a local folder.
    command = _export(f"{path} --task text-generation-with-past", f"{path}-int4")
    return f"; {path} is a checkpoint of Hugging Face, which is converted first: {command}"


def _export(model: str, folder: str) -> str:
    return f"`optimum-cli export openvino --model {model} --weight-format int4 {folder}`"
