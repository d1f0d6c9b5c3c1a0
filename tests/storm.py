"""Many requests at once to the successor model, whose every token can be checked."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from ovchat.v1 import completion_pb2, completion_service_pb2_grpc
from tests.successor import FIRST, LAST, successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.app import Server

LONGEST_PROMPT, LONGEST_ANSWER, MOST_CHOICES = 200, 150, 3
CANCELLED_SHARE = 0.2
# Between a refusal because the engine restarts and the next attempt.
PATIENCE = 0.2


@dataclass
class Storm:
    """Requests of mixed length, some of them cancelled half way.

    Attributes:
        outcomes: How requests ended: "whole", "cancelled", "again" (refused and repeated), or
            the status of those that were lost.
        wrong: Texts that are not what the model says.
    """

    stub: completion_service_pb2_grpc.CompletionServiceStub
    model: str = "successor"
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    async def run(self, requests: int, at_once: int, seed: int = 0) -> None:
        """Send so many requests, `at_once` of them at any time."""
        seeds = iter(range(seed, seed + requests))

        async def worker() -> None:
            for number in seeds:
                await self._ask(random.Random(number))

        await asyncio.gather(*(worker() for _ in range(at_once)))

    @property
    def lost(self) -> Counter[str]:
        """Requests that ended as they should not."""
        known = ("whole", "cancelled", "again")
        return Counter({how: n for how, n in self.outcomes.items() if how not in known})

    async def _ask(self, rng: random.Random) -> None:
        length = rng.randint(1, LONGEST_PROMPT)
        # Many share a beginning, which the prefix cache keeps.
        prompt = "#" * (length - 1) + chr(rng.randint(FIRST, LAST))
        request = completion_pb2.CreateCompletionRequest(
            model=self.model,
            prompt=[completion_pb2.Prompt(text=prompt)],
            max_tokens=rng.randint(1, LONGEST_ANSWER),
            n=rng.randint(1, MOST_CHOICES),
            temperature=0,
        )
        whole = successor_text(prompt, request.max_tokens)
        patience = rng.randint(0, 40) if rng.random() < CANCELLED_SHARE else None
        while True:
            try:
                self.outcomes[await self._read(request, whole, patience)] += 1
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    # Told so before it began.
                    self.outcomes["again"] += 1
                    await asyncio.sleep(PATIENCE)
                    continue
                self.outcomes[error.code().name] += 1
            return

    async def _read(
        self, request: completion_pb2.CreateCompletionRequest, whole: str, patience: int | None
    ) -> str:
        texts = [""] * request.n
        call = self.stub.StreamCompletion(request)
        count = 0
        try:
            async for chunk in call:
                for choice in chunk.choices:
                    texts[choice.index] += choice.text
                    if not whole.startswith(texts[choice.index]):
                        self.wrong.append(texts[choice.index])
                if count == patience:
                    return "cancelled"
                count += 1
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE and any(texts):
                return "LOST"
            raise
        finally:
            call.cancel()
        if any(text != whole for text in texts):
            self.wrong.append(repr(texts))
        return "whole"


@contextlib.asynccontextmanager
async def dying_engines(server: Server, model: str, seconds: float) -> AsyncIterator[list[float]]:
    """Kill the engine of a model every few seconds; yields the list of deaths' times."""
    deaths: list[float] = []

    async def kill() -> None:
        while True:
            await asyncio.sleep(seconds)
            client = server._engines[model]._client
            if client is not None:
                client.kill()
                deaths.append(asyncio.get_running_loop().time())

    task = asyncio.create_task(kill())
    try:
        yield deaths
    finally:
        task.cancel()
