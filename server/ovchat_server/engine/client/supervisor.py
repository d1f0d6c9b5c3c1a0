"""Keeps one engine process running."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Generic

from ovchat_server.api.errors import UnavailableError
from ovchat_server.api.models import ModelState
from ovchat_server.backoff import Backoff
from ovchat_server.engine.client.connection import EngineConnection, EngineDiedError
from ovchat_server.engine.client.live_requests import LiveRequests
from ovchat_server.engine.contract.engine import EngineStatus
from ovchat_server.engine.contract.messages import Capabilities, LimitsT, OutputT, RequestT

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.contract.messages import Cancel, Ready, Start, Wire
    from ovchat_server.engine.contract.spec import EngineSpec

# Starts in a row that may come to nothing before those who wait for one fail, and seconds that
# they wait at least: a machine may be out of memory for a moment.
MAX_FAILED_STARTS = 5
RESTART_TIMEOUT = 60.0

logger = logging.getLogger(__name__)


class EngineSupervisor(Generic[RequestT, OutputT, LimitsT]):
    """An engine that is restarted when it dies, with the requests that are under way.

    Runs from `start` to `close`. `on_change` is called after every change of state.

    Attributes:
        live: The requests under way.
        ready: What the engine said when it was loaded last; None: it never was.
    """

    def __init__(
        self,
        spec: EngineSpec,
        wire: Wire[RequestT, OutputT, LimitsT],
        on_change: Callable[[], None],
        backoff: Backoff | None = None,
    ) -> None:
        """Supervise the engine of a spec.

        Args:
            spec: What to start.
            wire: Decodes what it sends.
            on_change: Called in the event loop.
            backoff: Delays restarts.
        """
        options = spec.options
        self.live: LiveRequests[RequestT, OutputT] = LiveRequests(
            self._send, options.max_queue, options.max_queue_wait, self._trouble
        )
        self.ready: Ready[LimitsT] | None = None
        self._spec = spec
        self._wire = wire
        self._on_change = on_change
        self._backoff = backoff or Backoff()
        self._state = ModelState.LOADING
        self._reason = "it is being loaded"
        self._connection: EngineConnection[RequestT, OutputT, LimitsT] | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        # Starts in a row that came to nothing, and when the first of them was lost.
        self._failures = 0
        self._lost_at = 0.0

    def start(self) -> None:
        """Begin; returns at once."""
        self._task = asyncio.create_task(self._run(), name=f"engine {self._spec.name}")

    async def close(self) -> None:
        """End the engine and wait for its process. What is under way fails."""
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self.live.fail(self._unavailable)

    @property
    def status(self) -> EngineStatus:
        """Return how the engine is doing now."""
        load = self._connection.load if self._connection else None
        capabilities = self.ready.capabilities if self.ready else Capabilities()
        return EngineStatus(self._state, self._reason, load, capabilities)

    def check_ready(self) -> None:
        """Refuse to start requests while there is no engine.

        Raises:
            UnavailableError: There is none.
        """
        if trouble := self._trouble():
            raise trouble

    async def _run(self) -> None:
        while not self._closing:
            try:
                reason = await self._run_once()
            except Exception:
                # Whatever it is, an engine that nobody restarts would be worse.
                logger.exception("engine lost", extra={"model": self._spec.name})
                reason = "its engine failed; the server's log says why"
            logger.error("engine died", extra={"model": self._spec.name, "reason": reason})
            self._change(ModelState.UNAVAILABLE, reason)
            self._give_up_at_last()
            await self._backoff.wait()
            self._change(ModelState.LOADING, f"it is being restarted after: {reason}")

    def _give_up_at_last(self) -> None:
        now = asyncio.get_running_loop().time()
        if not self._failures:
            self._lost_at = now
        self._failures += 1
        if self._failures >= MAX_FAILED_STARTS and now - self._lost_at >= RESTART_TIMEOUT:
            self.live.fail(self._unavailable)

    async def _run_once(self) -> str:
        """Run one engine process until it dies; how it died, for an operator."""
        options = self._spec.options
        connection = await EngineConnection.start(self._spec, self._wire, self.live)
        self._connection = connection
        try:
            async with asyncio.timeout(options.load_timeout):
                self.ready = await connection.ready()
            self._backoff.reset()
            self._failures = 0
            self.live.resume()
            self._change(ModelState.READY, "")
            await self._watch(connection)
            self.live.process_died()
            # Now, not when the process is gone: its callers know already.
            self._change(ModelState.UNAVAILABLE, "its engine process ended")
            return await connection.died()
        except EngineDiedError:
            return await connection.died()
        except TimeoutError:
            connection.kill()
            return f"it was not loaded in {options.load_timeout:g} seconds"
        finally:
            self._connection = None
            await connection.close()

    async def _watch(self, connection: EngineConnection[RequestT, OutputT, LimitsT]) -> None:
        """Wait until the process is gone; end it where it hangs."""
        timeout = self._spec.options.step_timeout
        while not await connection.disconnected(timeout / 4):
            if connection.hangs(timeout):
                logger.error("engine hangs", extra={"model": self._spec.name, "seconds": timeout})
                connection.kill()

    def _send(self, command: Start[RequestT] | Cancel) -> None:
        if self._connection is not None:
            self._connection.send(command)

    def _trouble(self) -> UnavailableError | None:
        return None if self._state is ModelState.READY else self._unavailable()

    def _unavailable(self) -> UnavailableError:
        if self._closing:
            return UnavailableError("The server is stopping. Try again shortly.", retry_after=1)
        return UnavailableError(
            f"The model {self._spec.name!r} does not answer now: {self._state}. Try again shortly.",
            retry_after=1,
        )

    def _change(self, state: ModelState, reason: str) -> None:
        self._state, self._reason = state, reason
        self._on_change()
