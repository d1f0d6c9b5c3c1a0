"""What the engine processes of models are told that make vectors of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.engine.contract.pooling_messages import PoolingSpec
from ovchat_server.engine.contract.spec import EngineOptions

if TYPE_CHECKING:
    from ovchat_server.engine.contract.pooling_messages import PooledByGraph, Pooling
    from ovchat_server.kinds.base import EngineHost
    from ovchat_server.serving.pooling_files import PoolingFiles
    from ovchat_server.settings import ModelSettings


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
