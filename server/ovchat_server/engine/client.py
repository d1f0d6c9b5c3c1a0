"""The server's end of one engine process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.api.errors import InternalError, UnavailableError
from ovchat_server.api.models import EngineLoad
from ovchat_server.engine.base import GeneratedTokens, TokenFinish
from ovchat_server.engine.messages import (
    REFUSED,
    Add,
    Cancel,
    Command,
    Event,
    Failed,
    FrameReader,
    Load,
    Ready,
    Report,
    decode_event,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

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
        self._ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._mailboxes: dict[int, _Mailbox] = {}
        self._next_id = 0
        self._unsent = bytearray()
        self._failure = ""
        self.load: EngineLoad | None = None

    @classmethod
    async def start(cls, spec: EngineSpec) -> EngineClient:
        """Start a process that loads `spec`. It is not ready yet."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "ovchat_server.engine.process",
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                )
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)  # noqa: FBT003  the standard library's signature
        client = cls(process, ours)
        client._write(encode(spec))
        return client

    async def ready(self) -> int:
        """Wait until the model is loaded; its context length.

        Raises:
            EngineDiedError: It could not be loaded.
        """
        return await asyncio.shield(self._ready)

    async def died(self) -> str:
        """Wait until the process is gone; how it went, for an operator."""
        await asyncio.shield(self._reader)
        code = await self._process.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return self._failure or f"its engine process ended with {how}"

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[GeneratedTokens, None]:
        """See engine.base.Engine.generate."""
        self._next_id += 1
        identifier = self._next_id
        mailbox = self._mailboxes[identifier] = _Mailbox()
        if self._reader.done():
            mailbox.fail()
        sampling = request.sampling
        finished = False
        try:
            self._send(
                Add(
                    id=identifier,
                    prompt=request.prompt,
                    max_tokens=request.max_tokens,
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    top_k=sampling.top_k,
                    seed=sampling.seed,
                )
            )
            while not finished:
                piece = await mailbox.take()
                finished = piece.finish is not None
                yield piece
        finally:
            # Also when the task is cancelled, or the caller closes the generator.
            del self._mailboxes[identifier]
            if not finished:
                self._send(Cancel(identifier))

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
            for mailbox in self._mailboxes.values():
                mailbox.fail()
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
                    if mailbox := self._mailboxes.get(item.id):
                        mailbox.put(item.tokens, item.finish)
            case Ready(context_length=context_length, load=load):
                self.load = _engine_load(load)
                self._ready.set_result(context_length)
            case Failed(reason=reason):
                # The engine's own words hold paths and C++: for the log, not for callers.
                logger.error("engine failed", extra={"pid": self._process.pid, "reason": reason})
                self._failure = "its engine failed; the server's log says why"


def _engine_load(load: Load) -> EngineLoad:
    return msgspec.convert(load, EngineLoad, from_attributes=True)


class _Mailbox:
    """News of one sequence that its reader has not taken yet.

    Merged: a slow reader finds one larger piece, never a queue. What it can hold is bounded
    by the sequence's own length.
    """

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._finish: str | None = None
        self._failed = False
        self._arrived = asyncio.Event()

    def put(self, tokens: list[int], finish: str | None) -> None:
        self._tokens += tokens
        self._finish = finish
        self._arrived.set()

    def fail(self) -> None:
        self._failed = True
        self._arrived.set()

    async def take(self) -> GeneratedTokens:
        await self._arrived.wait()
        if not self._tokens and self._finish is None:
            message = "The model's engine stopped; it is being restarted. Try again shortly."
            raise UnavailableError(message, retry_after=1)
        if self._finish == REFUSED:
            raise InternalError(
                "The model's engine refused the request; the server's log says why."
            )
        finish = TokenFinish(self._finish) if self._finish else None
        tokens, self._tokens = tuple(self._tokens), []
        if not self._failed:
            self._arrived.clear()
        return GeneratedTokens(tokens, finish)
