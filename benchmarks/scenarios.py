"""What is measured of the service alone, with nothing to compare it with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.probes import probing
from benchmarks.schedule import guess
from benchmarks.service import serving
from benchmarks.workloads import decode, long_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import grpc.aio

    from benchmarks.figures import Figures
    from benchmarks.load_client import RestClient
    from benchmarks.prompts import Prompts
    from benchmarks.scales import Scale
    from benchmarks.service import Service

MEMORY_INTERVAL = 0.2
IDLE = 1.0
START_GUESS = 5.0
RUNNING = ("probes", "memory", "first-text")
# It starts a service of its own, beside which no other is to run.
START = "start"
SCENARIOS = (*RUNNING, START)


@dataclass(frozen=True, slots=True)
class Scenarios:
    """Measures a service that runs."""

    service: Service
    rest: RestClient
    channel: grpc.aio.Channel
    prompts: Prompts
    scale: Scale

    def guesses(self) -> dict[str, float]:
        """Return how many seconds a round of each may take."""
        crowd = guess(decode(64).plan(self.prompts, self.scale))
        alone = guess(long_prompt(self.prompts))
        return {"probes": IDLE + self.scale.repeats * alone, "memory": crowd, "first-text": 1.0}

    async def measure(self, name: str) -> Figures:
        """Run one of `RUNNING`."""
        if name == "probes":
            return await self._probes()
        if name == "memory":
            return await self._memory()
        return await self._first_text()

    async def _probes(self) -> Figures:
        async with probing(self.rest, self.channel) as idle:
            await asyncio.sleep(IDLE)
        async with probing(self.rest, self.channel) as during:
            for _ in range(self.scale.repeats):
                await self.rest.run(long_prompt(self.prompts))
        figures = {f"idle, {name}": value for name, value in idle.items()}
        return figures | {f"a prompt is read, {name}": value for name, value in during.items()}

    async def _memory(self) -> Figures:
        figures: Figures = {}
        running = asyncio.create_task(self.rest.run(decode(64).plan(self.prompts, self.scale)))
        while not running.done():
            for name, megabytes in self.service.memory().items():
                figures[f"{name} MiB"] = max(figures.get(f"{name} MiB", 0), megabytes)
            await asyncio.wait([running], timeout=MEMORY_INTERVAL)
        await running
        return figures

    async def _first_text(self) -> Figures:
        ask = decode(1).plan(self.prompts, self.scale).phases[0][0].asks[0]
        return {"tokens generated when it leaves": float(await self.rest.tokens_before_text(ask))}


async def measure_start(model: Path, properties: Mapping[str, str | float]) -> Figures:
    """Measure how long `ovchat up` takes to its first token."""
    async with serving(model, properties) as service:
        return {"first token s": service.first_token}
