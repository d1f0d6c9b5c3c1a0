"""What kinds of layers a model has, by its config.json."""

from __future__ import annotations

import json
from pathlib import Path

# Those of transformers whose keys and values are kept for each token.
ATTENTION = {"attention", "full_attention", "sliding_attention", "chunked_attention"}


def has_recurrent_layers(folder: str) -> bool:
    """Return whether the model in a folder has layers with a state instead of a KV cache."""
    path = Path(folder) / "config.json"
    if not path.exists():
        return False
    config = json.loads(path.read_text())
    layers = config.get("layer_types") or config.get("layers_block_type") or []
    return not ATTENTION.issuperset(layers)
