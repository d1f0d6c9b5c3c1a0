"""What engine processes run that generate tokens with OpenVINO GenAI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.engine.contract.generation_spec import MIN_KV_BLOCKS, GenerationSpec
from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.load_errors import lasting
from ovchat_server.engine.genai.pipeline import GenaiPipeline
from ovchat_server.engine.scheduling.speculator import Speculator
from ovchat_server.engine.scheduling.worker import GenerationWorker

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_messages import (
        GenerationLimits,
        SequenceOutput,
        SequenceRequest,
    )
    from ovchat_server.engine.contract.worker import Worker, WorkerContext


def load(
    spec: bytes, context: WorkerContext
) -> Worker[SequenceRequest, SequenceOutput, GenerationLimits]:
    """Load the model of a GenerationSpec; see engine.contract.worker.LoadWorker."""
    decoded = msgspec.msgpack.decode(spec, type=GenerationSpec)
    try:
        pipeline = GenaiPipeline(decoded, Speculator())
    except ModelLoadError:
        raise
    except Exception as error:
        if told := lasting(error, decoded, lambda: _block_bytes(decoded)):
            raise told from error
        raise
    return GenerationWorker(pipeline, decoded, context)


def _block_bytes(spec: GenerationSpec) -> int:
    """Load the model with the smallest KV cache, and return the size of a block."""
    options = msgspec.structs.replace(spec.options, kv_cache_gb=None, kv_blocks=MIN_KV_BLOCKS)
    pipeline = GenaiPipeline(msgspec.structs.replace(spec, options=options), Speculator())
    return pipeline.cache_bytes // pipeline.total_blocks
