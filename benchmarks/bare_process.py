"""The bare loop as a contender: `bare_loop` in a process of its own, and its other end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from benchmarks.plan import Plan, Trace

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_spec import GenerationSpec

ROOT = Path(__file__).resolve().parent.parent
# Traces of a run are one line.
LINE_LIMIT = 1 << 26
# Seconds between requests that come at once: what a server takes to read one.
APART = 0.001


class BareLoop:
    """A bare loop that runs."""

    def __init__(
        self, process: asyncio.subprocess.Process, name: str = "bare loop", apart: float = 0.0
    ) -> None:
        """See start; lanes begin `apart` seconds after each other."""
        self.name = name
        self._process = process
        self._apart = apart

    @classmethod
    async def start(cls, spec: GenerationSpec) -> Self:
        """Load a model; it is ready when this returns."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.bare_loop", msgspec.json.encode(spec).decode()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
            cwd=ROOT,
        )
        loop = cls(process)
        await loop._line()
        return loop

    def again(self) -> BareLoop:
        """The same loop under another name, to see how far two runs of it are apart."""
        return BareLoop(self._process, f"{self.name} again")

    def spread(self) -> BareLoop:
        """The same loop, to which requests come one after the other, as they do to a server."""
        return BareLoop(self._process, f"{self.name}, spread", APART)

    async def run(self, plan: Plan) -> list[Trace]:
        """See Contender.run."""
        plan = Plan(
            tuple(
                tuple(
                    msgspec.structs.replace(lane, delay=lane.delay + number * self._apart)
                    for number, lane in enumerate(phase)
                )
                for phase in plan.phases
            )
        )
        assert self._process.stdin is not None  # noqa: S101  for the type
        self._process.stdin.write(msgspec.json.encode(plan) + b"\n")
        return msgspec.json.decode(await self._line(), type=list[Trace])

    async def close(self) -> None:
        """End it."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def _line(self) -> bytes:
        assert self._process.stdout is not None  # noqa: S101  for the type
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the bare loop ended")
        return line
