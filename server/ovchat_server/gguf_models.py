"""GGUF files among the models to serve: each becomes a folder before anything starts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.conversion.cache import ConvertedModels
from ovchat_server.conversion.errors import ConversionError
from ovchat_server.conversion.magic import check_magic
from ovchat_server.conversion.weight_form import WeightForm
from ovchat_server.near_names import did_you_mean_path
from ovchat_server.serving.model_folder import ModelFilesError
from ovchat_server.serving.model_path import folder_fault, instead_of_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ovchat_server.settings import ModelSettings, Settings

SUFFIX = ".gguf"


def with_folders(settings: Settings, convert: Callable[[Path, WeightForm], Path]) -> Settings:
    """Return settings in which each model is a folder.

    Args:
        settings: The settings.
        convert: Converts a file and returns its folder. It is called for those that were not yet
            converted, or changed since.

    Raises:
        ModelFilesError: A path is neither a GGUF file nor a model's folder.
        ConversionError: A folder is said to be converted.
    """
    # Before the first conversion, which takes minutes.
    for model in settings.models:
        _check(model)
    cache = ConvertedModels(settings.cache_dir)
    models = tuple(_with_folder(model, cache, convert) for model in settings.models)
    return dataclasses.replace(settings, models=models)


def _check(model: ModelSettings) -> None:
    path = model.path
    fault = None
    if path.is_file():
        try:
            check_magic(path)
        except ConversionError as error:
            fault = f"{error}{instead_of_file(path)}"
    elif path.suffix.lower() == SUFFIX:
        fault = f"there is no file {path}{did_you_mean_path(path)}"
    else:
        fault = folder_fault(path)
    if fault:
        raise ModelFilesError(f"the model {model.name!r}: {fault}")
    if model.weights is not None and not path.is_file():
        raise ConversionError(
            f"the model {model.name!r}: weights is for GGUF files, and {path} is none"
        )


def _with_folder(
    model: ModelSettings, cache: ConvertedModels, convert: Callable[[Path, WeightForm], Path]
) -> ModelSettings:
    path = model.path
    if not path.is_file():
        return model
    form = model.weights or WeightForm.AUTO
    return msgspec.structs.replace(model, path=cache.find(path, form) or convert(path, form))
