"""What models that make vectors of texts have in common: their files, their engines' specs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.engine.contract.pooling_messages import PoolingSpec
from ovchat_server.engine.contract.spec import EngineOptions
from ovchat_server.kinds.base import ModelSettingsError
from ovchat_server.serving.pooling_files import read_pooling_files

if TYPE_CHECKING:
    from ovchat_server.engine.contract.pooling_messages import PooledByGraph, Pooling
    from ovchat_server.kinds.base import EngineHost
    from ovchat_server.serving.pooling_files import PoolingFiles
    from ovchat_server.settings import ModelSettings


def pooling_files(settings: ModelSettings) -> PoolingFiles:
    """Read a model's folder; its texts may be as long as the options say.

    Raises:
        ModelFilesError: The folder lacks something.
        ModelSettingsError: The model was not made for texts of that length.
    """
    files = read_pooling_files(settings.path)
    longest = settings.max_model_len
    if longest is None:
        return files
    if longest > files.context_length:
        raise ModelSettingsError(
            f"the model {settings.name!r}: max_model_len must be at most {files.context_length}, "
            f"what the model was made for, got {longest}"
        )
    return dataclasses.replace(files, context_length=longest)


def pooling_spec(
    settings: ModelSettings,
    files: PoolingFiles,
    host: EngineHost,
    pooling: Pooling | PooledByGraph,
    answer_tokens: tuple[int, ...] = (),
) -> PoolingSpec:
    """Return what the engine process of a model is told; see PoolingSpec."""
    return PoolingSpec(
        name=settings.name,
        path=str(files.graph.parent.resolve()),
        options=msgspec.convert(settings, EngineOptions, from_attributes=True),
        processors=host.processors,
        replicas=host.replicas,
        pooling=pooling,
        answer_tokens=answer_tokens,
        pad_token=files.pad_token,
        max_batch_tokens=settings.max_batch_tokens,
        device=settings.device,
        properties=settings.properties,
    )
