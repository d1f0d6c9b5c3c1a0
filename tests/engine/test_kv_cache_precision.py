"""What the KV cache keeps a number in, and so how many bytes it takes."""

from __future__ import annotations

import pytest

from ovchat_server.engine.genai.pipeline import GenaiPipeline
from ovchat_server.engine.scheduling.speculator import Speculator
from tests.engine.conftest import spec

HEAD_SIZE = 32
# What docs/models.md says that there is besides numbers.
SCALES = 8 * (HEAD_SIZE + 32)
# Whatever the processor: bf16 is another error (test_load_failures).
COMPUTED = {"INFERENCE_PRECISION_HINT": "f32"}


@pytest.mark.parametrize(
    ("precision", "number", "scales"),
    [
        # The graph asks for f16, as do those exported without compression.
        (None, 2, 0),
        ("u4", 0.5, SCALES),
        ("u8", 1, SCALES),
        ("f16", 2, 0),
        ("f32", 4, 0),
    ],
)
def test_the_option_decides_how_many_bytes_the_cache_takes(
    precision: str | None, number: float, scales: int
) -> None:
    pipeline = GenaiPipeline(spec(kv_cache_precision=precision, properties=COMPUTED), Speculator())

    # One layer of one head.
    assert pipeline.cache_bytes == pipeline.total_blocks * (64 * HEAD_SIZE * number + scales)
