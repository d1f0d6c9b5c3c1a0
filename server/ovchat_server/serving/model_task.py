"""What a model is for, by its architecture and its graph: never by the names of its files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.domain.models import EMBEDDING_TYPE, MODEL_TYPE, RERANK_TYPE
from ovchat_server.serving.model_folder import ModelFilesError, ModelFolder
from ovchat_server.serving.model_path import pooling_graph

if TYPE_CHECKING:
    from pathlib import Path

# Vectors of tokens, or of texts, as Optimum Intel exports them.
VECTORS = frozenset({"last_hidden_state", "token_embeddings", "sentence_embedding"})
CLASSIFIER = "ForSequenceClassification"
_NAMES = re.compile(rb'\bnames="([^"]*)"')


def model_task(folder: Path) -> str:
    """Return the type of models that a folder holds one of.

    Language models that were exported for their vectors are told from those that generate by what
    their graph returns: the architecture that `config.json` names is the same.
    """
    try:
        graph = pooling_graph(folder)
        if graph is None:
            return MODEL_TYPE
        names = graph_names(graph)
        architecture = architecture_of(ModelFolder(folder))
    except (ModelFilesError, OSError):
        # Whoever reads the folder says what is wrong.
        return MODEL_TYPE
    if architecture.endswith(CLASSIFIER):
        return RERANK_TYPE
    if names & VECTORS and "logits" not in names:
        return EMBEDDING_TYPE
    return MODEL_TYPE


def architecture_of(folder: ModelFolder) -> str:
    """Return the name of a model's class in transformers; "" where its files are silent.

    Raises:
        ModelFilesError: `config.json` is no JSON.
    """
    match folder.read_json("config.json"):
        case {"architectures": [str(name), *_]}:
            return name
    return ""


def graph_names(graph: Path) -> frozenset[str]:
    """Return the names of a graph's inputs, its outputs and other tensors that have one."""
    names: set[str] = set()
    with graph.open("rb") as file:
        # Layer by layer: the file may have tens of megabytes.
        for line in file:
            for found in _NAMES.findall(line):
                names.update(found.decode().split(","))
    return frozenset(names)
