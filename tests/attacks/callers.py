"""An attacker and the one who is harmed, with a key each, at one `ovchat up`."""

from __future__ import annotations

import contextlib
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from ovchat_server.engine.contract.generation_spec import DEFAULT_KV_BLOCKS
from ovchat_server.settings import ModelSettings
from tests.conftest import ROOT, model_table
from tests.launch.stack import Stack, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

ATTACKER, HARMED = "sk-attacker-0123456789", "sk-harmed-0123456789"
CHAT = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}


@dataclass(frozen=True)
class Seconds:
    """How long requests took, each of which was answered."""

    each: list[float]

    def __str__(self) -> str:
        """For who reads the run."""
        median, longest = statistics.median(self.each), max(self.each)
        return f"{len(self.each)} answered: {median:.3f} s (median), {longest:.3f} s (longest)"

    @property
    def median(self) -> float:
        return statistics.median(self.each)


@dataclass
class Callers:
    """Both, as clients of its REST door."""

    stack: Stack
    attacker: httpx.AsyncClient
    harmed: httpx.AsyncClient

    async def chats(self, count: int) -> Seconds:
        """How long so many chats of the harmed one take, one after the other."""

        async def chat() -> None:
            response = await self.harmed.post("/v3/chat/completions", json=CHAT)
            assert response.status_code == 200, response.text

        return Seconds([await timed(chat) for _ in range(count)])


async def timed(ask: Callable[[], Awaitable[None]]) -> float:
    began = time.monotonic()
    await ask()
    return time.monotonic() - began


@contextlib.asynccontextmanager
async def calling(
    directory: Path, *options: str, kv_blocks: int = DEFAULT_KV_BLOCKS, **demo: Any
) -> AsyncIterator[Callers]:
    """`ovchat up` with the models "demo" and "successor", and both callers.

    `kv_blocks` is an option of the successor model; those of the other one are `demo`.
    """
    keys = directory / "keys"
    keys.write_text(f"{ATTACKER}\n{HARMED}\n")
    keys.chmod(0o600)
    chosen = ("--api-key-file", str(keys), *options)
    table = model_table(ModelSettings(name="demo", path=ROOT / "models/demo", **demo))
    async with contextlib.AsyncExitStack() as opened:
        stack = await opened.enter_async_context(
            running(directory, *chosen, kv_blocks=kv_blocks, tables=table)
        )
        attacker, harmed = [
            await opened.enter_async_context(
                httpx.AsyncClient(
                    base_url=stack.url,
                    headers={"authorization": f"Bearer {key}"},
                    timeout=None,
                    limits=httpx.Limits(max_connections=None),
                )
            )
            for key in (ATTACKER, HARMED)
        ]
        yield Callers(stack, attacker, harmed)
