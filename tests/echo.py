"""A kind of model that returns what it was sent: all that has to be written for a new kind."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import msgspec

from ovchat_server.domain.models import EngineLoad, ModelStatus
from ovchat_server.engine.client.supervisor import EngineSupervisor
from ovchat_server.engine.contract.engine import ANONYMOUS
from ovchat_server.engine.contract.messages import (
    Capabilities,
    MessageDecoder,
    Ready,
    Report,
    Start,
)
from ovchat_server.engine.contract.spec import EngineOptions, EngineSpec
from ovchat_server.engine.contract.times import RequestTimes
from ovchat_server.kinds.base import BuiltModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from ovchat_server.backoff import Backoff
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.engine.contract.worker import Worker, WorkerContext
    from ovchat_server.kinds.base import EngineHost
    from ovchat_server.settings import ModelSettings

ECHO_FILE = "echo.txt"
# A text that holds it ends the process that is to return it.
DEADLY = "\0"


class EchoRequest(msgspec.Struct, frozen=True):
    id: int
    text: str
    suspect: bool = False


class EchoOutput(msgspec.Struct, frozen=True, array_like=True):
    id: int
    character: str
    finish: str | None


class EchoLimits(msgspec.Struct, frozen=True):
    max_characters: int


class EchoSpec(EngineSpec, frozen=True, kw_only=True):
    max_characters: int
    worker: str = "tests.echo:load"


def echo_decoder() -> MessageDecoder[EchoRequest, EchoOutput, EchoLimits]:
    return MessageDecoder(Start[EchoRequest], Report[EchoOutput], Ready[EchoLimits])


# In the process.


def load(spec: bytes, context: WorkerContext) -> Worker[EchoRequest, EchoOutput, EchoLimits]:
    return EchoWorker(msgspec.msgpack.decode(spec, type=EchoSpec), context)


class EchoWorker:
    """Returns a character of each text in every step; suspects first, one after the other."""

    def __init__(self, spec: EchoSpec, context: WorkerContext) -> None:
        self.decoder = echo_decoder()
        self._context = context
        self._left: dict[int, str] = {}
        self._new: list[int] = []
        self._suspects: list[int] = []
        self.ready = Ready(
            EchoLimits(spec.max_characters), self.load(), Capabilities(sees_logits=True)
        )

    def add(self, request: EchoRequest) -> None:
        self._left[request.id] = request.text
        if request.suspect:
            self._suspects.append(request.id)
        else:
            self._new.append(request.id)

    def cancel(self, identifier: int) -> None:
        self._left.pop(identifier, None)
        self._suspects = [item for item in self._suspects if item != identifier]

    def poll(self) -> None:
        pass

    @property
    def busy(self) -> bool:
        return bool(self._left)

    def step(self) -> Report[EchoOutput]:
        outputs = []
        suspects, self._suspects = self._suspects[:1], self._suspects[1:]
        for suspect in suspects:
            self._context.isolate(suspect)
        for identifier in suspects or [*self._left]:
            text = self._left[identifier]
            if text[0] == DEADLY:
                os._exit(1)
            self._left[identifier] = text[1:]
            finish = None if text[1:] else "stop"
            outputs.append(EchoOutput(identifier, text[0], finish))
            if finish:
                del self._left[identifier]
        if suspects:
            self._context.isolate(None)
        admitted, self._new = self._new, []
        return Report(outputs, self.load(), admitted)

    def load(self) -> EngineLoad:
        return EngineLoad(running_requests=len(self._left))


# In the server.


class EchoStream:
    """The characters of one text, as they come."""

    def __init__(self) -> None:
        self.times = RequestTimes()
        self._arrived: asyncio.Queue[EchoOutput | ApiError] = asyncio.Queue()

    def admit(self) -> None:
        pass

    def put(self, output: EchoOutput) -> None:
        self._arrived.put_nowait(output)

    def fail(self, error: ApiError) -> None:
        self._arrived.put_nowait(error)

    async def characters(self) -> AsyncIterator[str]:
        while True:
            item = await self._arrived.get()
            if not isinstance(item, EchoOutput):
                raise item
            yield item.character
            if item.finish:
                return


@dataclass
class EchoResumableRequest:
    request: EchoRequest
    returned: int = 0

    def note(self, output: EchoOutput) -> None:
        self.returned += len(output.character)

    def remaining(self, steps: int, *, suspect: bool) -> EchoRequest:  # noqa: ARG002
        text = self.request.text[self.returned :]
        return EchoRequest(self.request.id, text, suspect=suspect)


class EchoEngine:
    def __init__(
        self, spec: EchoSpec, on_change: Callable[[], None], backoff: Backoff | None = None
    ) -> None:
        self.supervisor = EngineSupervisor(spec, echo_decoder(), on_change, backoff)

    def start(self) -> None:
        self.supervisor.start()

    async def close(self) -> None:
        await self.supervisor.close()

    async def echo(self, text: str) -> AsyncIterator[str]:
        """Return a text, a character at a time; who stops reading gives it up."""
        self.supervisor.check_ready()
        in_flight, stream = self.supervisor.in_flight, EchoStream()
        request = EchoRequest(in_flight.new_id(), text)
        in_flight.start([EchoResumableRequest(request)], stream, ANONYMOUS)
        ended = False
        try:
            async for character in stream.characters():
                yield character
            ended = True
        finally:
            in_flight.forget(request.id)
            if not ended:
                in_flight.cancel(request.id)


@dataclass(frozen=True, slots=True)
class EchoModel:
    type: ClassVar[str] = "echo"

    id: str
    engine: EchoEngine = field(repr=False)

    @property
    def status(self) -> ModelStatus:
        now = self.engine.supervisor.status
        return ModelStatus(
            self.id, 0, 0, (), now.state, now.reason, now.load, type=self.type, provider="tests"
        )


class EchoKind:
    """See kinds.base.ModelKind."""

    type: ClassVar[str] = "echo"
    options: ClassVar[frozenset[str]] = frozenset()

    def recognises(self, folder: Path) -> bool:
        return (folder / ECHO_FILE).is_file()

    def build(self, settings: ModelSettings, host: EngineHost) -> BuiltModel:
        size = int((settings.path / ECHO_FILE).read_text())
        options = EngineOptions(max_queue=settings.max_queue)
        spec = EchoSpec(name=settings.name, max_characters=size, options=options)
        engine = EchoEngine(spec, host.on_change)
        return BuiltModel(EchoModel(settings.name, engine), engine)
