"""The models in tests/data/pooling, with what other implementations say of them."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from ovchat_server.settings import ModelSettings
from tests.conftest import EXACT, ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = ROOT / "tests/data/pooling"
EMBEDDING = ("bert", "xlm-r", "qwen3-embedding")
RERANK = ("bert-rerank", "xlm-r-rerank", "qwen3-rerank", "qwen3-seq-cls")
# How far two implementations may be apart, in 32 bits.
TOLERANCE = 1e-4


def folder_settings(folder: str, name: str = "", **changes: Any) -> ModelSettings:
    """Those of one of the models, under its folder's name or another."""
    # A language model ranks only if it is told to.
    task = {"task": "rerank"} if folder == "qwen3-rerank" else {}
    fields: dict[str, Any] = {"path": FOLDER / folder, "properties": EXACT, **task, **changes}
    return ModelSettings(name=name or folder, **fields)


@cache
def expected(name: str) -> Any:
    """What was computed with one of the models elsewhere."""
    return json.loads((FOLDER / name / "expected.json").read_text())


def furthest(found: Sequence[Sequence[float]], wanted: Sequence[Sequence[float]]) -> float:
    """How far two lists of vectors are apart, in their worst number."""
    assert [len(vector) for vector in found] == [len(vector) for vector in wanted]
    return max(
        abs(one - other)
        for vector, right in zip(found, wanted, strict=True)
        for one, other in zip(vector, right, strict=True)
    )
