"""The server's end of one engine process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Generic

from ovchat_server.engine.client.process_output import log_output
from ovchat_server.engine.client.spawn import start_child
from ovchat_server.engine.contract.frames import FrameReader, encode
from ovchat_server.engine.contract.messages import (
    Cancel,
    Failed,
    IsolatedRun,
    LimitsT,
    OutputT,
    Ready,
    Report,
    RequestT,
    Start,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from typing import Self

    from ovchat_server.domain.models import EngineLoad
    from ovchat_server.engine.client.in_flight_requests import InFlightRequests
    from ovchat_server.engine.contract.messages import MessageDecoder
    from ovchat_server.engine.contract.spec import EngineSpec

READ_SIZE = 1 << 20
# Between the end of the socket and that of the process, which only has to exit.
EXIT_TIMEOUT = 5.0
# What the system means by them.
SIGNALS: Mapping[int, str] = {
    signal.SIGKILL: "its engine process was killed, as the system does when memory runs out",
    signal.SIGBUS: "its engine process was ended, as the system does when a model's file gets "
    "shorter while it is read: replace such files by renaming others",
}


class EngineDiedError(Exception):
    """The engine process ended before its model was loaded."""


class EngineConnection(Generic[RequestT, OutputT, LimitsT]):
    """Starts one engine process, exchanges messages with it, and ends it.

    The process is alive from `start` to `close`, or until it dies: see `died`.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        connection: socket.socket,
        decoder: MessageDecoder[RequestT, OutputT, LimitsT],
        in_flight: InFlightRequests[RequestT, OutputT],
    ) -> None:
        """Talk to `process` over `connection`. Use `start` instead."""
        self._decoder = decoder
        self._in_flight = in_flight
        self._process = process
        self._connection = connection
        loop = asyncio.get_running_loop()
        self._frames = FrameReader()
        self._gone: asyncio.Future[None] = loop.create_future()
        self._ready: asyncio.Future[Ready[LimitsT]] = loop.create_future()
        self._unsent = bytearray()
        self._failure = Failed("")
        self._load: EngineLoad | None = None
        self._output: asyncio.Task[None] | None = None
        # How many commands were sent, and since when a report is due: because a command has not
        # been taken yet, or because the last report said that the process is busy.
        self._sent = 0
        self._awaiting_report_since: float | None = None
        # sock_recv in a task would register and unregister the socket for every frame.
        loop.add_reader(connection, self._read)

    @classmethod
    async def start(
        cls,
        spec: EngineSpec,
        decoder: MessageDecoder[RequestT, OutputT, LimitsT],
        in_flight: InFlightRequests[RequestT, OutputT],
    ) -> Self:
        """Start a process that loads `spec` and works on `in_flight`. It is not ready yet."""
        module = "ovchat_server.engine.process.main"
        process, ours = await start_child(module, output=asyncio.subprocess.PIPE)
        self = cls(process, ours, decoder, in_flight)
        if process.stdout is not None:
            self._output = asyncio.create_task(log_output(spec.name, process.stdout))
        self._write(encode(spec))
        return self

    @property
    def load(self) -> EngineLoad | None:
        """The load that it reported last; None if it is not ready or gone."""
        return self._load

    async def ready(self) -> Ready[LimitsT]:
        """Wait until the model is loaded, and return its limits.

        Raises:
            EngineDiedError: It could not be loaded.
        """
        return await asyncio.shield(self._ready)

    async def disconnected(self, timeout: float) -> bool:
        """Wait until the process has closed its socket; return False on a timeout."""
        # asyncio.wait raises nothing, however the process ended.
        done, _ = await asyncio.wait([self._gone], timeout=timeout)
        return bool(done)

    async def died(self) -> Failed:
        """Wait until the process has ended, and return why, for an operator."""
        await asyncio.shield(self._gone)
        code = await self._process.wait()
        if self._failure.reason:
            return self._failure
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return Failed(SIGNALS.get(-code) or f"its engine process ended with {how}")

    async def close(self) -> None:
        """End the process and wait for it. It may be called again."""
        self._stop_reading()
        self._connection.close()
        try:
            async with asyncio.timeout(EXIT_TIMEOUT):
                await self._process.wait()
        except TimeoutError:
            # It hangs in a step.
            self.kill()
            await self._process.wait()
        if self._output is not None:
            # Read its last output, but not for ever: a child of its own may hold the pipe open.
            await asyncio.wait([self._output], timeout=EXIT_TIMEOUT)
            self._output.cancel()

    def kill(self, reason: str = "") -> None:
        """End the process at once; `died` gives the reason."""
        self._failure = self._failure if self._failure.reason else Failed(reason)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def send(self, command: Start[RequestT] | Cancel) -> None:
        """Send a command to the process, unless it is gone or still loads its model."""
        # While the model is loaded there is nothing to send: `resume` sends all requests later.
        # A command that arrived together with the spec would be lost, and its report be overdue.
        if self._ready.done() and not self._gone.done():
            self._sent += 1
            if self._awaiting_report_since is None:
                self._awaiting_report_since = asyncio.get_running_loop().time()
            self._write(encode(command))

    def hangs(self, seconds: float) -> bool:
        """Return whether a report has been due for so many seconds."""
        since = self._awaiting_report_since
        return since is not None and asyncio.get_running_loop().time() - since > seconds

    def _write(self, frame: bytes) -> None:
        """Write a frame to the socket without blocking; the rest follows when it is writable.

        A StreamWriter's drain() could be cancelled, and nobody would know whether the engine has
        got the request.
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
            # The engine is gone; `_read` notices it and fails or keeps the requests.
            self._unsent.clear()
            loop.remove_writer(self._connection)
            return
        del self._unsent[:sent]
        if self._unsent:
            loop.add_writer(self._connection, self._flush)
        else:
            loop.remove_writer(self._connection)

    def _read(self) -> None:
        """Deliver the events that have arrived."""
        try:
            data = self._connection.recv(READ_SIZE)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._stop_reading()
        for frame in self._frames.feed(data):
            self._deliver(self._decoder.decode_event(frame))

    def _stop_reading(self) -> None:
        """Stop reading: the process is gone or about to end. It may be called again."""
        if self._gone.done():
            return
        self._gone.set_result(None)
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._connection)
        loop.remove_writer(self._connection)
        self._load = None
        if not self._ready.done():
            self._ready.set_exception(EngineDiedError())
            # Mark it as retrieved: perhaps nobody waits for it.
            self._ready.exception()

    def _deliver(self, event: Report[OutputT] | Ready[LimitsT] | Failed | IsolatedRun) -> None:
        match event:
            case Report(load=load):
                self._load = load
                owes = event.busy or event.taken < self._sent
                self._awaiting_report_since = asyncio.get_running_loop().time() if owes else None
                self._in_flight.deliver(event)
            case IsolatedRun(id=identifier):
                self._in_flight.isolate(identifier)
            case Ready(load=load):
                self._load = load
                self._ready.set_result(event)
            case Failed():
                self._failure = event
