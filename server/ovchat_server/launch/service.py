"""A child process that is kept running, with back-off between restarts."""

from __future__ import annotations

import asyncio
import logging
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.backoff import Backoff
from ovchat_server.launch.child import Child
from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.liveness import never

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ovchat_server.launch.child import Program

# Of programs that say why they cannot start: an error, and arguments that are wrong.
_EXPLAINED = (1, 2)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checks:
    """How a child is watched.

    Attributes:
        serves: Returns once the child serves.
        hangs: Called then; returns once the child answers nothing any more.
    """

    serves: Callable[[], Awaitable[None]]
    hangs: Callable[[], Awaitable[None]] = never


class Service:
    """A child that is restarted when it ends by itself, and ended when it hangs.

    Runs from `start` to `stop`; leave with `close`, which kills what is left.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        checks: Checks,
        backoff: Backoff | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Keep `program` running.

        Args:
            name: Names it in messages.
            program: The program.
            checks: How it is watched.
            backoff: Delays restarts; begins anew once it serves.
            stop_signal: Asks it to end.
        """
        self.name = name
        self.served = asyncio.Event()
        self._program = program
        self._checks = checks
        self._backoff = backoff or Backoff()
        self._stop_signal = stop_signal
        self._stopping = asyncio.Event()
        self._timeout = 0.0
        self._task: asyncio.Task[None] | None = None
        self._child: Child | None = None

    def start(self) -> None:
        """Start it."""
        self._task = asyncio.create_task(self._keep(), name=self.name)

    async def ended(self) -> None:
        """Wait until it runs no more, which only `stop` brings about.

        Raises:
            LaunchError: It cannot start at all.
        """
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self, timeout: float) -> None:
        """Ask it to end, and kill it after `timeout` seconds."""
        self._timeout = timeout
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop_now(self, timeout: float) -> None:
        """Ask it to end at once, and kill it after `timeout` seconds."""
        if self._child is not None:
            self._child.interrupt()
        self._timeout = timeout
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=timeout)
        await self.close()

    async def close(self) -> None:
        """Kill what is left of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _keep(self) -> None:
        while not self._stopping.is_set():
            how = await self._run()
            if self._stopping.is_set():
                return
            text = "%s %s; starting it again in %g s"
            logger.warning(text, self.name, how, self._backoff.delay)
            await self._unless_stopping(self._backoff.wait())

    async def _run(self) -> str:
        """Run it once, to its end, and return how it ended.

        Raises:
            LaunchError: Another attempt would end the same way.
        """
        try:
            child = await Child.spawn(self.name, self._program)
        except OSError as error:
            # The machine has no process or no memory left; in a moment it may.
            return f"could not be started ({error.strerror})"
        async with child:
            self._child = child
            watch = asyncio.create_task(self._watch(child))
            try:
                await self._unless_stopping(child.wait())
                if self._stopping.is_set():
                    await child.terminate(self._timeout, self._stop_signal)
            finally:
                watch.cancel()
                await asyncio.wait([watch])
        code = await child.wait()
        if code > 0 and not self._stopping.is_set() and not self.served.is_set():
            # Another attempt would end the same way.
            if code in _EXPLAINED:
                raise LaunchError
            raise LaunchError(f"{self.name} cannot start: it {describe_end(code)}")
        return describe_end(code)

    async def _watch(self, child: Child) -> None:
        await self._checks.serves()
        self._backoff.reset()
        if self.served.is_set():
            logger.info("%s serves again", self.name)
        self.served.set()
        # Only now: what loads may be slow to answer.
        await self._checks.hangs()
        if not self._stopping.is_set():
            logger.warning(
                "%s answers nothing any more (--liveness-timeout): killing it", self.name
            )
            await child.close()

    async def _unless_stopping(self, work: Awaitable[object]) -> None:
        """Wait for `work`, or until it is to stop."""
        await first(work, self._stopping.wait())


async def first(*works: Awaitable[object]) -> None:
    """Do `works` at once until the first is done or fails, and cancel the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        # What they do last, such as closing a channel, comes before what we do next.
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def describe_end(code: int) -> str:
    """Say in words how a child ended whose exit code is `code`, negative for a signal."""
    if code < 0:
        return f"was ended by signal {signal.Signals(-code).name}"
    return f"ended with exit code {code}" if code else "ended, as it does on SIGTERM"
