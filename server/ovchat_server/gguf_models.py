"""GGUF files among the models to serve: each becomes a folder before anything starts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.conversion.cache import ConvertedModels
from ovchat_server.conversion.errors import ConversionError
from ovchat_server.conversion.magic import check_magic
from ovchat_server.conversion.weight_form import WeightForm
from ovchat_server.domain.models import MODEL_TYPE
from ovchat_server.near_names import did_you_mean_path
from ovchat_server.serving.model_folder import ModelFilesError
from ovchat_server.serving.model_path import folder_fault, instead_of_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ovchat_server.settings import ModelSettings, Settings

SUFFIX = ".gguf"


def check_paths(models: Iterable[ModelSettings]) -> None:
    """Check that each path is a GGUF file or a model's folder, as far as a look at it tells.

    Raises:
        ModelFilesError: One is neither; the message names the model, and says what to do.
    """
    for model in models:
        if fault := _fault(model) or _draft_fault(model.draft_model):
            raise ModelFilesError(f"the model {model.name!r}: {fault}")


def with_folders(settings: Settings, convert: Callable[[Path, WeightForm], Path]) -> Settings:
    """Return settings in which each model is a folder.

    Args:
        settings: The settings.
        convert: Converts a file and returns its folder. It is called for those that were not yet
            converted, or changed since.

    """
    cache = ConvertedModels(settings.cache_dir)
    models = tuple(_with_folder(model, cache, convert) for model in settings.models)
    return dataclasses.replace(settings, models=models)


def _fault(model: ModelSettings) -> str | None:
    path = model.path
    try:
        is_file = path.is_file()
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    if is_file:
        return _for_others(model) or _file_fault(path)
    if path.suffix.lower() == SUFFIX:
        return f"there is no file {path}{did_you_mean_path(path)}"
    if model.weights is not None and path.is_dir():
        return f"weights is for GGUF files, and {path} is a folder"
    return folder_fault(path)


def _file_fault(path: Path) -> str | None:
    try:
        check_magic(path)
    except ConversionError as error:
        return f"{error}{instead_of_file(path)}"
    return None


def _for_others(model: ModelSettings) -> str | None:
    """Return what is wrong if options say that a model does not generate."""
    others = ("pooling", "normalize", "matryoshka", "max_model_len")
    given = [f"{name} is set" for name in others if getattr(model, name) is not None]
    if model.task not in (None, MODEL_TYPE):
        given.insert(0, f"its task is {model.task}")
    return f"{given[0]}, and GGUF files are for models that generate text" if given else None


def _draft_fault(path: Path | None) -> str | None:
    if path is None:
        return None
    if path.is_file():
        return f"draft_model must be a model's folder, and {path} is a file"
    fault = folder_fault(path)
    return fault and f"draft_model: {fault}"


def _with_folder(
    model: ModelSettings, cache: ConvertedModels, convert: Callable[[Path, WeightForm], Path]
) -> ModelSettings:
    path = model.path
    if not path.is_file():
        return model
    form = model.weights or WeightForm.AUTO
    return msgspec.structs.replace(model, path=cache.find(path, form) or convert(path, form))
