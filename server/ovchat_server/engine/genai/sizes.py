"""What a model takes in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ovchat_server.engine.genai.configs import counted_twice

if TYPE_CHECKING:
    import openvino_genai as genai

    from ovchat_server.engine.contract.generation_spec import GenerationOptions

WEIGHTS = "openvino*model.bin"


def block_size(device: str) -> int:
    """Return how many tokens a KV block holds (genai, kv_cache_manager.hpp)."""
    return 16 if device.startswith("GPU") else 32


def weight_bytes(folder: str) -> int:
    """Return the size of the weights in a model's folder."""
    return sum(file.stat().st_size for file in Path(folder).glob(WEIGHTS))


def cache_bytes(pipeline: genai.ContinuousBatchingPipeline, options: GenerationOptions) -> int:
    """Return the size of the KV cache of a pipeline, which has run."""
    counted: int = pipeline.get_metrics().kv_cache_size_in_bytes
    return counted // counted_twice(options)
