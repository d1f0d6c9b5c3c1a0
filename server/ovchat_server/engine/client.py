"""The server's end of one engine process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.api.models import EngineLoad
from ovchat_server.engine.child import start_child
from ovchat_server.engine.generation import EngineGeneration
from ovchat_server.engine.messages import (
    Add,
    Cancel,
    Command,
    Event,
    Failed,
    FrameReader,
    Load,
    Ready,
    Report,
    Start,
    decode_event,
    encode,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from ovchat_server.engine.base import GenerationRequest
    from ovchat_server.engine.spec import EngineSpec

READ_SIZE = 1 << 20
# Between the end of the socket and that of the process, which only has to exit.
EXIT_TIMEOUT = 5.0

logger = logging.getLogger(__name__)


class EngineDiedError(Exception):
    """The engine process ended; the message says how, for an operator."""


class EngineClient:
    """Starts one engine process, speaks to it, and ends it.

    The process is alive from `start` to `close`, or until it dies: then every generation
    fails at once, and `died` says so.
    """

    def __init__(self, process: asyncio.subprocess.Process, connection: socket.socket) -> None:
        """Speak to `process` over `connection`; use `start`."""
        self._process = process
        self._connection = connection
        self._reader = asyncio.create_task(self._read())
        self._ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        self._generations: dict[int, EngineGeneration] = {}
        self._next_id = 0
        self._unsent = bytearray()
        self._failure = ""
        self.load: EngineLoad | None = None

    @classmethod
    async def start(cls, spec: EngineSpec) -> EngineClient:
        """Start a process that loads `spec`. It is not ready yet."""
        client = cls(*await start_child("ovchat_server.engine.process"))
        client._write(encode(spec))
        return client

    async def ready(self) -> Ready:
        """Wait until the model is loaded; what it can hold.

        Raises:
            EngineDiedError: It could not be loaded.
        """
        return await asyncio.shield(self._ready)

    async def disconnected(self) -> None:
        """Wait until nothing more comes from the process."""
        # Asked of, not for its outcome: whatever ended it, this is how to learn of it.
        await asyncio.wait([self._reader])

    async def died(self) -> str:
        """Wait until the process is gone; how it went, for an operator."""
        await asyncio.shield(self._reader)
        code = await self._process.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return self._failure or f"its engine process ended with {how}"

    def generate(self, requests: Sequence[GenerationRequest]) -> EngineGeneration:
        """See engine.base.Engine.generate."""
        sequences: dict[int, range] = {}
        index = 0
        for request in requests:
            self._next_id += 1
            sequences[self._next_id] = range(index, index + request.sequences)
            index += request.sequences
        generation = EngineGeneration(
            sequences, lambda identifier: self._send(Cancel(identifier)), self._forget
        )
        if self._reader.done():
            generation.fail()
        self._generations |= dict.fromkeys(sequences, generation)
        self._send(Start(tuple(map(_add, sequences, requests))))
        return generation

    async def close(self) -> None:
        """End the process and wait for it. May be called again."""
        self._reader.cancel()
        # Not `await self._reader` with its cancellation suppressed, nor wait_for: on Python
        # 3.11 either may swallow a cancellation of ours that comes at the same moment.
        await asyncio.wait([self._reader])
        self._connection.close()
        try:
            async with asyncio.timeout(EXIT_TIMEOUT):
                await self._process.wait()
        except TimeoutError:
            # It hangs inside a step.
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        """End the process at once; `died` tells of it."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _forget(self, identifier: int) -> None:
        del self._generations[identifier]

    def _send(self, command: Command) -> None:
        if not self._reader.done():
            self._write(encode(command))

    def _write(self, frame: bytes) -> None:
        """Hand a frame to the socket without waiting; what it does not take goes later.

        Not a StreamWriter: its drain() is a place to be cancelled at, after which nobody
        could say whether the engine has the request.
        """
        self._unsent += frame
        if len(self._unsent) == len(frame):
            self._flush()

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            sent = self._connection.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            # The engine is gone; the reader finds out and tells everybody.
            self._unsent.clear()
            loop.remove_writer(self._connection)
            return
        del self._unsent[:sent]
        if self._unsent:
            loop.add_writer(self._connection, self._flush)
        else:
            loop.remove_writer(self._connection)

    async def _read(self) -> None:
        """Deliver events until the process is gone, then fail everything that waits."""
        frames = FrameReader()
        loop = asyncio.get_running_loop()
        try:
            while data := await self._receive(loop):
                for frame in frames.feed(data):
                    self._deliver(decode_event(frame))
        finally:
            loop.remove_writer(self._connection)
            self.load = None
            for generation in self._generations.values():
                generation.fail()
            if not self._ready.done():
                self._ready.set_exception(EngineDiedError(self._failure or "it ended at start"))
                # Nobody may be waiting for it.
                self._ready.exception()

    async def _receive(self, loop: asyncio.AbstractEventLoop) -> bytes:
        try:
            return await loop.sock_recv(self._connection, READ_SIZE)
        except ConnectionError:
            return b""

    def _deliver(self, event: Event) -> None:
        match event:
            case Report(news=news, load=load):
                self.load = _engine_load(load)
                for item in news:
                    # Unknown: cancelled while the news was on its way.
                    if generation := self._generations.get(item.id):
                        generation.put(item)
            case Ready(load=load):
                self.load = _engine_load(load)
                self._ready.set_result(event)
            case Failed(reason=reason):
                # The engine's own words hold paths and C++: for the log, not for callers.
                logger.error("engine failed", extra={"pid": self._process.pid, "reason": reason})
                self._failure = "its engine failed; the server's log says why"


def _engine_load(load: Load) -> EngineLoad:
    return msgspec.convert(load, EngineLoad, from_attributes=True)


def _add(identifier: int, request: GenerationRequest) -> Add:
    sampling, search = request.sampling, request.search
    return Add(
        id=identifier,
        prompt=request.prompt,
        max_tokens=request.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        min_p=sampling.min_p,
        repetition_penalty=sampling.repetition_penalty,
        seed=sampling.seed,
        beams=search.width if search else 1,
        returned=request.sequences,
        length_penalty=search.length_penalty if search else 1.0,
        min_tokens=request.min_tokens,
        ignore_eos=request.ignore_eos,
        stop_tokens=request.stop_tokens,
        logprobs=request.logprobs,
        grammar=request.grammar,
        closed=request.closed,
        resumptions=request.resumptions,
    )
