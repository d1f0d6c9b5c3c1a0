"""Keeps one engine process running."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, Generic

from ovchat_server.backoff import Backoff
from ovchat_server.domain.errors import UnavailableError
from ovchat_server.domain.models import EngineLoad, ModelState
from ovchat_server.engine.client.connection import EngineConnection, EngineDiedError
from ovchat_server.engine.client.file_changes import files_changed, files_of
from ovchat_server.engine.client.in_flight_requests import InFlightRequests
from ovchat_server.engine.client.memory_text import memory_text
from ovchat_server.engine.client.overload_log import OverloadLog
from ovchat_server.engine.contract.engine import EngineStatus
from ovchat_server.engine.contract.messages import (
    NO_MEMORY,
    Capabilities,
    Failed,
    LimitsT,
    OutputT,
    RequestT,
)
from ovchat_server.engine.contract.observer import EngineUsage, Unobserved

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.client.file_changes import Files
    from ovchat_server.engine.contract.messages import Cancel, MessageDecoder, Ready, Start
    from ovchat_server.engine.contract.observer import EngineObserver
    from ovchat_server.engine.contract.spec import EngineSpec

# After so many failed starts in a row, and at least so many seconds, waiting requests fail. Not
# sooner: a machine may be out of memory for a moment.
MAX_FAILED_STARTS = 5
RESTART_TIMEOUT = 60.0
# Seconds between log lines that say that a model is still being loaded.
LOADING_INTERVAL = 30.0

logger = logging.getLogger(__name__)


class EngineSupervisor(Generic[RequestT, OutputT, LimitsT]):
    """Restarts an engine when its process dies, and resumes the requests in flight.

    It runs from `start` to `close`. `on_change` is called after every change of state.

    Attributes:
        in_flight: The requests in flight.
        ready: What the engine reported when it was loaded last; None if it never was.
    """

    def __init__(
        self,
        spec: EngineSpec,
        decoder: MessageDecoder[RequestT, OutputT, LimitsT],
        on_change: Callable[[], None],
        backoff: Backoff | None = None,
        observer: EngineObserver[OutputT] | None = None,
    ) -> None:
        """Supervise the engine of a spec.

        Args:
            spec: What to start.
            decoder: Decodes the messages of its process.
            on_change: Called in the event loop.
            backoff: Delays restarts.
            observer: Is told what the engine does.
        """
        options = spec.options
        self._observer: EngineObserver[OutputT] = observer or Unobserved()
        self._observer.watch(self._usage)
        self._overload = OverloadLog(spec.name, lambda: self.status.load)
        self.in_flight: InFlightRequests[RequestT, OutputT] = InFlightRequests(
            self._send,
            options.max_queue,
            options.max_queue_wait,
            self._unavailable_reason,
            self._overload.refused,
        )
        self.in_flight.observer = self._observer
        self.ready: Ready[LimitsT] | None = None
        self._spec = spec
        self._decoder = decoder
        self._on_change = on_change
        self._backoff = backoff or Backoff()
        self._state = ModelState.LOADING
        self._reason = "it is being loaded"
        self._connection: EngineConnection[RequestT, OutputT, LimitsT] | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        # How many starts in a row have failed, and when the first of them did.
        self._failures = 0
        self._lost_at = 0.0

    def start(self) -> None:
        """Start in the background."""
        self._task = asyncio.create_task(self._run(), name=f"engine {self._spec.name}")

    async def close(self) -> None:
        """End the engine and wait for its process. Requests in flight fail."""
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self.in_flight.fail(self._unavailable)
        self._overload.close()

    @property
    def status(self) -> EngineStatus:
        """Return how the engine is doing now."""
        load = self._connection.load if self._connection else None
        capabilities = self.ready.capabilities if self.ready else Capabilities()
        return EngineStatus(self._state, self._reason, load, capabilities)

    def _usage(self) -> EngineUsage:
        load = self.status.load or EngineLoad()
        # While there is no process, its cache is that of the last one.
        loaded, memory = (self.ready.load, self.ready.memory) if self.ready else (load, NO_MEMORY)
        blocks = loaded.total_kv_blocks
        return EngineUsage(
            running=load.running_requests,
            # More than those that its process has: it may be gone.
            waiting=max(self.in_flight.unfinished - load.running_requests, 0),
            used_kv_blocks=load.used_kv_blocks,
            total_kv_blocks=blocks,
            kv_block_size=memory.kv_tokens // blocks if blocks else 0,
        )

    def check_ready(self) -> None:
        """Raise unless the engine is ready.

        Raises:
            UnavailableError: It is not.
        """
        if error := self._unavailable_reason():
            raise error

    async def _run(self) -> None:
        while not self._closing:
            # Before they are read, because they may have changed by the time loading fails.
            files = files_of(self._spec.path)
            try:
                failure = await self._run_once()
            except Exception as error:
                # Restart after any error: an engine that nobody restarts would be worse.
                logger.exception("%s: its engine is lost", self._spec.name)
                failure = Failed(f"its engine is lost: {error!r}")
            too_often = self._failed_too_often()
            # A model that was loaded before may load again: perhaps its files are being replaced.
            if failure.lasting and (self.ready is None or too_often):
                await self._fail(failure.reason, files)
                continue
            delay = self._backoff.delay
            self._log(logging.ERROR, f"{failure.reason}; restarting in {delay:g} s")
            self._change(ModelState.UNAVAILABLE, failure.reason)
            if too_often:
                self.in_flight.fail(self._unavailable)
            await self._backoff.wait()
            self._observer.restarted()
            self._change(ModelState.LOADING, f"it is being loaded again after: {failure.reason}")

    async def _fail(self, reason: str, files: Files) -> None:
        """Fail all waiting requests, and wait until the model's files change.

        Args:
            reason: Why the model cannot be loaded.
            files: The files that it cannot be loaded from.
        """
        self._log(logging.ERROR, f"cannot be loaded: {reason}")
        self._change(ModelState.FAILED, f"it cannot be loaded: {reason}")
        self.in_flight.fail(self._unavailable)
        self._failures = 0
        await files_changed(self._spec.path, files)
        self._change(ModelState.LOADING, "it is being loaded: its files have changed")

    def _failed_too_often(self) -> bool:
        """Count a lost engine, and return whether waiting requests have to fail."""
        now = asyncio.get_running_loop().time()
        if not self._failures:
            self._lost_at = now
        self._failures += 1
        return self._failures >= MAX_FAILED_STARTS and now - self._lost_at >= RESTART_TIMEOUT

    async def _run_once(self) -> Failed:
        """Run one engine process until it dies, and return why it died."""
        options = self._spec.options
        began = asyncio.get_running_loop().time()
        self._log(logging.INFO, "loading")
        connection = await EngineConnection.start(self._spec, self._decoder, self.in_flight)
        self._connection = connection
        try:
            async with asyncio.timeout(options.load_timeout):
                self.ready = await self._loaded(connection)
            seconds = asyncio.get_running_loop().time() - began
            memory = memory_text(self.ready.memory, self._spec.replicas)
            self._log(logging.INFO, f"loaded in {seconds:.1f} s: {memory}")
            self._backoff.reset()
            self._failures = 0
            self.in_flight.resume()
            self._change(ModelState.READY, "")
            await self._watch(connection)
            self.in_flight.process_died()
            # Now, not when the process has exited: callers notice already.
            self._change(ModelState.UNAVAILABLE, "its engine process ended")
            return await connection.died()
        except EngineDiedError:
            return await connection.died()
        except TimeoutError:
            connection.kill(f"it was not loaded in {options.load_timeout:g} s (load_timeout)")
            return await connection.died()
        finally:
            self._connection = None
            await connection.close()

    async def _loaded(
        self, connection: EngineConnection[RequestT, OutputT, LimitsT]
    ) -> Ready[LimitsT]:
        """Wait until the model is loaded, and log now and then that it is not yet."""
        telling = asyncio.create_task(self._tell_of_loading())
        try:
            return await connection.ready()
        finally:
            telling.cancel()

    async def _tell_of_loading(self) -> None:
        for number in itertools.count(1):
            await asyncio.sleep(LOADING_INTERVAL)
            seconds = number * LOADING_INTERVAL
            self._log(logging.INFO, f"still loading, for {seconds:g} s now")

    async def _watch(self, connection: EngineConnection[RequestT, OutputT, LimitsT]) -> None:
        """Wait until the process is gone; end it if it hangs."""
        timeout = self._spec.options.step_timeout
        while not await connection.disconnected(timeout / 4):
            if connection.hangs(timeout):
                connection.kill(f"its engine said nothing for {timeout:g} s (step_timeout)")

    def _send(self, command: Start[RequestT] | Cancel) -> None:
        if self._connection is not None:
            self._connection.send(command)

    def _unavailable_reason(self) -> UnavailableError | None:
        return None if self._state is ModelState.READY else self._unavailable()

    def _unavailable(self) -> UnavailableError:
        if self._closing:
            return UnavailableError("The server is stopping. Try again shortly.", retry_after=1)
        complaint = f"The model {self._spec.name!r} is not available: {self._reason}."
        if self._state is ModelState.FAILED:
            return UnavailableError(complaint)
        return UnavailableError(f"{complaint} Try again shortly.", retry_after=1)

    def _log(self, level: int, text: str) -> None:
        name = self._spec.name
        logger.log(level, "%s: %s", name, text, extra={"model": name})

    def _change(self, state: ModelState, reason: str) -> None:
        self._state, self._reason = state, reason
        self._on_change()
