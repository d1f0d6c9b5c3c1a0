from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from ovchat_server.backoff import Backoff
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.client.generation_engine import SupervisedGenerationEngine
from ovchat_server.engine.contract.generation import GenerationRequest, TokenFinish
from ovchat_server.engine.contract.generation_spec import GenerationOptions, GenerationSpec
from ovchat_server.engine.contract.prompt import Prompt
from tests.conftest import EXACT, GRAMMAR_TIMEOUT, ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from ovchat_server.domain.models import EngineLoad
    from ovchat_server.engine.client.connection import EngineConnection
    from ovchat_server.engine.contract.generation import PromptScore
    from ovchat_server.engine.contract.generation_engine import GenerationStream
    from ovchat_server.engine.contract.generation_messages import SequenceOutput
    from ovchat_server.engine.contract.messages import Report

T = TypeVar("T")
# Of any kind: what has an engine and tells when its state changes.
AnyWatched = TypeVar("AnyWatched", bound=Any)


async def at_once(_: float) -> None:
    """Wait for nothing but the loop's next turn, in which others see that the engine is away."""
    await asyncio.sleep(0)


class WatchedProcess:
    """The process of an engine of any kind, whose changes a test can wait for."""

    engine: Any
    changed: asyncio.Event

    def stop(self) -> None:
        """Have the engine stand still, as one that hangs does."""
        self.send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the engine meanwhile."""
        self.stop()
        try:
            yield
        finally:
            self.send(signal.SIGCONT)

    async def together(self, *asked: Coroutine[Any, Any, T]) -> list[T]:
        """What comes of requests that the engine is told of at once."""
        with self.held():
            answers = [asyncio.create_task(one) for one in asked]
            # Each of them asks in its first turn.
            await asyncio.sleep(0)
        return await asyncio.gather(*answers)

    async def until(self, state: ModelState) -> None:
        while self.engine.supervisor.status.state is not state:
            self.changed.clear()
            await self.changed.wait()

    async def until_reason(self, words: str) -> None:
        while words not in self.engine.supervisor.status.reason:
            self.changed.clear()
            await self.changed.wait()

    @property
    def connection(self) -> EngineConnection[Any, Any, Any]:
        connection: EngineConnection[Any, Any, Any] | None = self.engine.supervisor._connection
        assert connection is not None
        return connection

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.connection.kill()

    @property
    def pid(self) -> int:
        return self.connection._process.pid


@dataclass
class Watched(WatchedProcess):
    """An engine whose changes and reports a test can wait for."""

    spec: GenerationSpec
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.engine = SupervisedGenerationEngine(self.spec, self._changed, Backoff(at_once))
        self._awaited: list[tuple[Callable[[EngineLoad], bool], asyncio.Future[None]]] = []
        in_flight = self.engine.supervisor.in_flight
        self._deliver, in_flight.deliver = in_flight.deliver, self._reported  # type: ignore[method-assign]

    def _reported(self, report: Report[SequenceOutput]) -> None:
        self._deliver(report)
        self._look_at(report.load)

    def _changed(self) -> None:
        if load := self.engine.status.load:
            self._look_at(load)
        self.changed.set()

    def _look_at(self, load: EngineLoad) -> None:
        for wanted, seen in self._awaited:
            if not seen.done() and wanted(load):
                seen.set_result(None)

    async def idle(self) -> None:
        """Until nothing holds a block."""
        await self.until_load(
            lambda load: not (load.running_requests or load.waiting_requests or load.used_kv_blocks)
        )

    async def until_load(self, wanted: Callable[[EngineLoad], bool]) -> None:
        """Until a report tells of such a load: on a busy machine others may have come with it."""
        if (load := self.engine.status.load) and wanted(load):
            return
        waiter = (wanted, asyncio.get_running_loop().create_future())
        self._awaited.append(waiter)
        try:
            await waiter[1]
        finally:
            self._awaited.remove(waiter)

    @property
    def load(self) -> EngineLoad:
        load = self.engine.status.load
        assert load is not None
        return load


def spec(path: str = "models/successor", **changes: Any) -> GenerationSpec:
    """Describe an engine; `changes` are GenerationSpec's and GenerationOptions'."""
    own = {"name": "successor", "context_length": 4096, "end_tokens": (258,)}
    own |= {name: changes.pop(name) for name in (*own, "worker", "draft_model") if name in changes}
    options = {
        "kv_blocks": 64,
        "max_num_batched_tokens": 256,
        # However slow the machine is that those before them run on.
        "max_queue_wait": 300.0,
        "properties": EXACT,
        "grammar_timeout": GRAMMAR_TIMEOUT,
    } | changes
    return GenerationSpec(path=str(ROOT / path), options=GenerationOptions(**options), **own)


def request(text: str, max_tokens: int, **fields: Any) -> GenerationRequest:
    return GenerationRequest(Prompt(tuple(text.encode())), max_tokens, **fields)


@dataclass
class Sequence:
    """What came of one sequence."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    alternatives: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    prompt: list[PromptScore] = field(default_factory=list)
    finish: TokenFinish | None = None
    cached: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        return bytes(self.tokens).decode()


async def collect_all(generation: GenerationStream) -> list[Sequence]:
    """All sequences of a generation, by index."""
    sequences: defaultdict[int, Sequence] = defaultdict(Sequence)
    with generation:
        async for piece in generation:
            sequence = sequences[piece.index]
            assert sequence.finish is None
            sequence.tokens += piece.tokens
            sequence.logprobs += piece.logprobs
            sequence.alternatives += piece.alternatives
            assert not (piece.prompt and len(sequence.tokens) > len(piece.tokens))
            sequence.prompt += piece.prompt
            sequence.finish = piece.finish
            sequence.cached += [] if piece.cached is None else [piece.cached]
    return [sequences[index] for index in sorted(sequences)]


async def collect(generation: GenerationStream) -> tuple[str, TokenFinish | None]:
    """The only sequence of a generation."""
    [sequence] = await collect_all(generation)
    return sequence.text, sequence.finish


@contextlib.asynccontextmanager
async def loaded(watched: AnyWatched) -> AsyncIterator[AnyWatched]:
    """An engine of any kind, from when it can be asked until the context is left."""
    watched.engine.start()
    try:
        await watched.until(ModelState.READY)
        yield watched
    finally:
        await watched.engine.close()


@contextlib.asynccontextmanager
async def engine(**changes: object) -> AsyncIterator[Watched]:
    async with loaded(Watched(spec(**changes))) as watched:  # type: ignore[arg-type]
        yield watched


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    async with engine() as watched:
        yield watched
