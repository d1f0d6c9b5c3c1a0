"""A model behind the engine, beside the same without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.api.models import ModelState
from ovchat_server.engine.tokenizer import Tokenizer
from tests.conftest import ROOT
from tests.engine.conftest import Sequence, Watched, collect_all, spec

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.engine.base import GenerationRequest
    from tests.reference_rules import ReferenceModel

TOKENIZER = Tokenizer.load(ROOT / "models/demo")
END = TOKENIZER.token("<|im_end|>")


@dataclass
class Subject:
    """A model behind the engine, and the same without."""

    watched: Watched
    reference: ReferenceModel

    async def ask(self, *requests: GenerationRequest) -> list[Sequence]:
        return await collect_all(self.watched.engine.generate(requests))


async def started(path: Path, **changes: object) -> Watched:
    fields = {"name": "subject", "end_tokens": (END,), "context_length": 1024, "kv_blocks": 128}
    watched = Watched(spec(str(path), **(fields | changes)))
    watched.engine.start()
    await watched.until(ModelState.READY)
    assert watched.engine.status.sees_logits
    return watched
