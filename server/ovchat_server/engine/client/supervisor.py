"""Keeps one engine process running."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ovchat_server.api.errors import UnavailableError
from ovchat_server.api.models import ModelState
from ovchat_server.engine.client.connection import EngineClient, EngineDiedError
from ovchat_server.engine.client.grammar_checker import GrammarSandbox
from ovchat_server.engine.client.live_requests import LiveRequests
from ovchat_server.engine.contract.generation import ANONYMOUS, EngineStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.engine.contract.generation import Caller, Generation, GenerationRequest
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.contract.messages import Cancel, Start
    from ovchat_server.engine.contract.spec import EngineSpec

# Seconds between a death and the next start: doubled every time, back to the first once
# the model was loaded.
FIRST_DELAY = 0.25
LONGEST_DELAY = 30.0
# Starts in a row that may come to nothing before those who wait for one are told, and seconds
# that they wait at least: a machine may be out of memory for a moment.
MAX_FAILED_STARTS = 5
PATIENCE = 60.0

logger = logging.getLogger(__name__)


class EngineSupervisor:
    """An engine that is restarted when it dies.

    Starts with `start`, ends with `close`. Every change of state is told to `on_change`.
    """

    def __init__(self, spec: EngineSpec, on_change: Callable[[], None]) -> None:
        """Supervise the engine of `spec`; `on_change` is called in the event loop."""
        self._spec = spec
        self._sandbox = GrammarSandbox(spec)
        self._on_change = on_change
        self._state = ModelState.LOADING
        self._reason = "it is being loaded"
        self._context_length = 0
        self._search_lengths: tuple[int, ...] = ()
        self._sees_logits = True
        self._client: EngineClient | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._delay = FIRST_DELAY
        self._live = LiveRequests(self._send, spec.max_queue, spec.max_queue_wait, self._trouble)
        # Starts in a row that came to nothing, and when the first of them was lost.
        self._failures = 0
        self._lost_at = 0.0

    def start(self) -> None:
        """Begin; returns at once."""
        self._task = asyncio.create_task(self._run(), name=f"engine {self._spec.name}")

    async def close(self) -> None:
        """End the engine and wait for its process."""
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._live.fail(self._unavailable)
        await self._sandbox.close()

    @property
    def status(self) -> EngineStatus:
        """How the engine is doing now."""
        load = self._client.load if self._client else None
        return EngineStatus(
            state=self._state,
            context_length=self._context_length,
            search_lengths=self._search_lengths,
            reason=self._reason,
            load=load,
            sees_logits=self._sees_logits,
        )

    async def check_grammar(self, grammar: str) -> str:
        """See engine.contract.generation.Engine.check_grammar."""
        return await self._sandbox.check(grammar)

    def check_queue(self, caller: Caller = ANONYMOUS) -> None:
        """See engine.contract.generation.Engine.check_queue."""
        self._live.check_queue(caller)

    def generate(
        self, requests: Sequence[GenerationRequest], caller: Caller = ANONYMOUS
    ) -> Generation:
        """See engine.contract.generation.Engine.generate."""
        if self._state is not ModelState.READY:
            raise self._unavailable()
        return self._live.start(requests, caller)

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
            await asyncio.sleep(self._delay)
            self._delay = min(self._delay * 2, LONGEST_DELAY)
            self._change(ModelState.LOADING, f"it is being restarted after: {reason}")

    def _give_up_at_last(self) -> None:
        now = asyncio.get_running_loop().time()
        if not self._failures:
            self._lost_at = now
        self._failures += 1
        if self._failures >= MAX_FAILED_STARTS and now - self._lost_at >= PATIENCE:
            self._live.fail(self._unavailable)

    async def _run_once(self) -> str:
        """Run one engine process until it dies; how it died, for an operator."""
        client = await EngineClient.start(self._spec, self._live)
        self._client = client
        try:
            async with asyncio.timeout(self._spec.load_timeout):
                ready = await client.ready()
            self._context_length = ready.limits.context_length
            self._search_lengths = ready.limits.search_lengths
            self._sees_logits = ready.capabilities.sees_logits
            self._delay = FIRST_DELAY
            self._failures = 0
            self._live.resume()
            self._change(ModelState.READY, "")
            # Later, and the first to ask would wait for it.
            self._sandbox.start()
            await self._watch(client)
            self._live.process_died()
            # Now, not when the process is gone: its callers know already.
            self._change(ModelState.UNAVAILABLE, "its engine process ended")
            return await client.died()
        except EngineDiedError:
            return await client.died()
        except TimeoutError:
            client.kill()
            return f"it was not loaded in {self._spec.load_timeout:g} seconds"
        finally:
            self._client = None
            await client.close()

    async def _watch(self, client: EngineClient) -> None:
        """Wait until the process is gone; end it where it hangs."""
        timeout = self._spec.step_timeout
        while not await client.disconnected(timeout / 4):
            if client.hangs(timeout):
                logger.error("engine hangs", extra={"model": self._spec.name, "seconds": timeout})
                client.kill()

    def _send(self, command: Start[SequenceRequest] | Cancel) -> None:
        if self._client is not None:
            self._client.send(command)

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
