"""The servers of others that ours is measured beside: what each needs, and how it is started."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.models import smollm2
from benchmarks.service import MODEL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CACHE = Path(__file__).resolve().parents[2] / ".cache/benchmarks"
LLAMA_CPP = CACHE / "llama.cpp"
LLAMA_MODELS = {"0.6b": LLAMA_CPP / "qwen3-0.6b-q4_0.gguf", "smollm2": smollm2.FILE}
SLOTS = 16
# A prompt of 3,000 tokens and its answer. Each slot has so much for itself: if all shared one
# cache, each of them would look through all of it, which is slower.
SLOT_TOKENS = 3328
OPENARC = CACHE / "openarc"
OPENARC_MODELS = {"0.6b": CACHE / "qwen3-0.6b-int4"}
OPENARC_START = "from src.cli import cli; cli()"


@dataclass(frozen=True, slots=True)
class Reference:
    """A server that can be measured where it is installed.

    Attributes:
        name: What reports call it.
        folder: Where it is installed; a file in it says its version.
        models: The file or folder that it loads for each of our models that it is measured with.
        recipe: The command that installs it.
        ready: A path that is answered with 200 once the model is loaded.
        command: What starts it, given one of `models`, the port and a folder for its files.
        environment: Variables that it needs, given that folder.
    """

    name: str
    folder: Path
    models: Mapping[str, Path]
    recipe: str
    ready: str
    command: Callable[[Path, int, Path], tuple[str, ...]]
    environment: Callable[[Path], Mapping[str, str]]

    @property
    def version(self) -> str:
        """Which one is installed; empty where none is."""
        file = self.folder / "version"
        return file.read_text().strip() if file.exists() else ""


def _llama_cpp(model: Path, port: int, folder: Path) -> tuple[str, ...]:
    del folder
    return (
        *(str(LLAMA_CPP / "build/bin/llama-server"), "--model", str(model), "--alias", MODEL),
        *("--host", "127.0.0.1", "--port", str(port), "--offline"),
        *("--parallel", str(SLOTS), "--ctx-size", str(SLOTS * SLOT_TOKENS)),
        # By itself it leaves out what it takes for a second thread of a core.
        *("--threads", str(len(os.sched_getaffinity(0)))),
        # No prompt comes twice, so keeping them aside would cost it time for nothing.
        *("--cache-ram", "0"),
    )


def _openarc(model: Path, port: int, folder: Path) -> tuple[str, ...]:
    entry = {
        "model_name": MODEL,
        "model_path": str(model),
        "model_type": "llm",
        "engine": "ovgenai",
        "device": "CPU",
    }
    _openarc_settings(folder).write_text(json.dumps({"models": {MODEL: entry}}))
    return (
        *(str(OPENARC / ".venv/bin/python"), "-c", OPENARC_START, "serve", "start"),
        *("--host", "127.0.0.1", "--port", str(port), "--load-models", MODEL),
    )


def _openarc_settings(folder: Path) -> Path:
    return folder / "openarc_config.json"


def _openarc_environment(folder: Path) -> Mapping[str, str]:
    return {
        "PYTHONPATH": str(OPENARC / "source"),
        "OPENARC_CONFIG_FILE": str(_openarc_settings(folder)),
        "OPENARC_LOG_FILE": os.devnull,
        "HF_HUB_OFFLINE": "1",
    }


REFERENCES = {
    reference.name: reference
    for reference in (
        Reference(
            name="llama.cpp",
            folder=LLAMA_CPP,
            models=LLAMA_MODELS,
            recipe="make bench-llama-cpp",
            ready="/health",
            command=_llama_cpp,
            environment=lambda _: {},
        ),
        Reference(
            name="OpenArc",
            folder=OPENARC,
            models=OPENARC_MODELS,
            recipe="make bench-openarc OPENARC=<a clone of it>",
            ready="/readyz",
            command=_openarc,
            environment=_openarc_environment,
        ),
    )
}
