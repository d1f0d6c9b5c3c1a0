"""A model behind the engine, beside the same without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.models import ModelState
from ovchat_server.tokenizer.huggingface import Tokenizer
from tests.conftest import ROOT
from tests.engine.conftest import Sequence, Watched, collect_all, spec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ovchat_server.engine.contract.generation import GenerationRequest
    from tests.reference_rules import ReferenceModel

# Of one token and of several, within a KV block and beyond.
PROMPTS = [(1, 2, 3), (1528, 117, 115, 101, 114), (7,), tuple(range(300, 340))]
EXACTLY = 1e-3
TOKENIZER = Tokenizer.load(ROOT / "models/demo")
END = TOKENIZER.token("<|im_end|>")


@dataclass
class Subject:
    """A model behind the engine, and the same without."""

    watched: Watched
    reference: ReferenceModel

    async def ask(self, *requests: GenerationRequest) -> list[Sequence]:
        return await collect_all(self.watched.engine.generate(requests))


def same_alternatives(
    told: Iterable[tuple[int, float]], expected: Iterable[tuple[int, float]]
) -> None:
    """Whether these are the expected tokens, in their order, and as likely."""
    said, wanted = [*told], [*expected]
    assert [token for token, _ in said] == [token for token, _ in wanted]
    values = [value for _, value in wanted]
    assert [value for _, value in said] == pytest.approx(values, abs=EXACTLY)


async def started(path: Path, **changes: object) -> Watched:
    fields = {"name": "subject", "end_tokens": (END,), "context_length": 1024, "kv_blocks": 128}
    watched = Watched(spec(str(path), **(fields | changes)))
    watched.engine.start()
    await watched.until(ModelState.READY)
    assert watched.engine.status.capabilities.sees_logits
    return watched
