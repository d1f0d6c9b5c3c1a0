from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ovchat_server.api.models import ModelState
from ovchat_server.engine.spec import EngineSpec
from ovchat_server.engine.supervisor import EngineSupervisor
from tests.conftest import EXACT, ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class Watched:
    """An engine whose changes a test can wait for."""

    spec: EngineSpec
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.engine = EngineSupervisor(self.spec, self.changed.set)

    async def until(self, state: ModelState) -> None:
        while self.engine.status.state is not state:
            self.changed.clear()
            await self.changed.wait()

    def kill(self) -> None:
        client = self.engine._client
        assert client is not None
        client.kill()

    @property
    def pid(self) -> int:
        client = self.engine._client
        assert client is not None
        return client._process.pid


def spec(path: str = "models/successor", **changes: object) -> EngineSpec:
    fields: dict[str, object] = {
        "name": "successor",
        "path": str(ROOT / path),
        "device": "CPU",
        "kv_blocks": 64,
        "kv_cache_gb": 0,
        "max_num_batched_tokens": 256,
        "context_length": 4096,
        "end_tokens": (258,),
        "properties": EXACT,
    }
    return EngineSpec(**(fields | changes))  # type: ignore[arg-type]


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    watched = Watched(spec())
    watched.engine.start()
    await watched.until(ModelState.READY)
    yield watched
    await watched.engine.close()
