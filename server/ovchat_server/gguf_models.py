"""GGUF files among the models to serve: each becomes a folder before anything starts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.conversion.cache import ConvertedModels
from ovchat_server.conversion.errors import ConversionError
from ovchat_server.conversion.weight_form import WeightForm

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
        ConversionError: There is no such file, or a folder is said to be converted.
    """
    cache = ConvertedModels(settings.cache_dir)
    models = tuple(_with_folder(model, cache, convert) for model in settings.models)
    return dataclasses.replace(settings, models=models)


def _with_folder(
    model: ModelSettings, cache: ConvertedModels, convert: Callable[[Path, WeightForm], Path]
) -> ModelSettings:
    path = model.path
    if path.suffix.lower() != SUFFIX and not path.is_file():
        if model.weights is not None:
            raise ConversionError(
                f"the model {model.name!r}: weights is for GGUF files, and {path} is none"
            )
        return model
    if not path.is_file():
        raise ConversionError(f"the model {model.name!r}: there is no file {path}")
    form = model.weights or WeightForm.AUTO
    return msgspec.structs.replace(model, path=cache.find(path, form) or convert(path, form))
