"""Models whose layers have a state are told from others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.engine.genai.model_layers import has_recurrent_layers

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, False),
        ({}, False),
        ({"layer_types": ["full_attention", "sliding_attention"]}, False),
        ({"layer_types": ["linear_attention", "full_attention"]}, True),
        ({"layer_types": ["conv", "full_attention"]}, True),
        ({"layers_block_type": ["mamba", "attention"]}, True),
    ],
)
def test_layers_with_a_state(tmp_path: Path, config: Any, *, expected: bool) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(json.dumps(config))
    assert has_recurrent_layers(str(tmp_path)) == expected
