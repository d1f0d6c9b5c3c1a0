"""Checks in a process of its own whether grammars compile.

In the engine, a grammar that does not compile would fail a step for the whole batch, and a
malicious one could block the step for minutes or crash the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import math
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ovchat_server.domain.errors import UnavailableError
from ovchat_server.engine.client.spawn import start_child
from ovchat_server.engine.contract.frames import FrameReader, encode
from ovchat_server.engine.contract.grammar_messages import Checked, Compile, GrammarProcessSpec

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from ovchat_server.engine.contract.generation_spec import GenerationSpec

READ_SIZE = 1 << 16
CACHED_VERDICTS = 4096
# How many grammars may be checked or wait for their check.
MAX_WAITING = 64
# Seconds for which "too slow" is remembered: the machine may have been busy.
SLOW_FOR = 60.0
# Seconds. Loading the library and the tokenizer takes one, or several on a busy machine.
START_TIMEOUT = 60.0
DIED = "compiling it crashes the compiler"

logger = logging.getLogger(__name__)


class _DiedError(Exception):
    """The process ended."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Why a grammar does not compile, "" if it does, and how long to remember that."""

    reason: str
    until: float = math.inf


@dataclass(slots=True)
class _Check:
    """A grammar that is being checked, or waits for its turn."""

    task: asyncio.Task[str] = field(init=False)
    waiters: int = 0
    begun: bool = False


class GrammarProcess:
    """Checks the grammars of one model and caches the verdicts, "too slow" only for a while."""

    def __init__(self, spec: GenerationSpec, clock: Callable[[], float] = time.monotonic) -> None:
        """Check grammars for the model of `spec`; `start` starts the process."""
        self._spec = spec
        self._clock = clock
        self._verdicts: OrderedDict[bytes, _Verdict] = OrderedDict()
        self._checks: dict[bytes, _Check] = {}
        self._turn = asyncio.Lock()
        self._starting: asyncio.Task[_Process] | None = None

    def start(self) -> None:
        """Start the process unless it runs; return at once."""
        if self._starting is None:
            self._starting = asyncio.create_task(_Process.start(self._spec))
            self._starting.add_done_callback(_retrieve)

    async def close(self) -> None:
        """End the process; pending checks raise UnavailableError."""
        checks = [check.task for check in self._checks.values()]
        for check in checks:
            check.cancel()
        if checks:
            await asyncio.wait(checks)
        await self._end()

    async def check(self, grammar: str) -> str:
        """Return why a grammar does not compile, as a clause for the caller; "" if it does.

        It may be cancelled without affecting others who wait for the same grammar.

        Raises:
            UnavailableError: Too many grammars wait, or the process cannot be started.
        """
        key = hashlib.sha256(grammar.encode()).digest()
        verdict = self._verdicts.get(key)
        if verdict and self._clock() < verdict.until:
            self._verdicts.move_to_end(key)
            return verdict.reason
        if key not in self._checks:
            if len(self._checks) >= MAX_WAITING:
                message = "Too many new grammars are waiting to be compiled. Try again shortly."
                raise UnavailableError(message, retry_after=1)
            self._checks[key] = check = _Check()
            check.task = asyncio.create_task(self._check(check, key, grammar))
            check.task.add_done_callback(_retrieve)
        check = self._checks[key]
        check.waiters += 1
        try:
            # Cancelling one caller must not cancel the check: others may wait for it.
            await asyncio.wait([check.task])
        finally:
            check.waiters -= 1
            if not (check.waiters or check.begun):
                # Nobody waits for this check any more.
                check.task.cancel()
                self._forget(key, check)
        if check.task.cancelled():
            raise UnavailableError("The server is stopping.", retry_after=1)
        return check.task.result()

    async def _check(self, check: _Check, key: bytes, grammar: str) -> str:
        try:
            async with self._turn:
                check.begun = True
                verdict = await self._ask(grammar)
                if verdict.reason == DIED:
                    # Try once more: the process may have died of something else.
                    verdict = await self._ask(grammar)
        finally:
            self._forget(key, check)
        self._verdicts[key] = verdict
        if len(self._verdicts) > CACHED_VERDICTS:
            self._verdicts.popitem(last=False)
        return verdict.reason

    def _forget(self, key: bytes, check: _Check) -> None:
        # Another check of the same grammar may have replaced it.
        if self._checks.get(key) is check:
            del self._checks[key]

    async def _ask(self, grammar: str) -> _Verdict:
        process = await self._process()
        checked, until = Checked(DIED, last=True), math.inf
        try:
            async with asyncio.timeout(self._spec.options.grammar_timeout):
                checked = await process.ask(grammar)
        except TimeoutError:
            seconds = f"{self._spec.options.grammar_timeout:g}"
            checked = Checked(f"it takes more than {seconds} seconds to compile", last=True)
            until = self._clock() + SLOW_FOR
        except _DiedError:
            name = self._spec.name
            logger.warning("%s: its grammar process died", name, extra={"model": name})
        finally:
            # On cancellation, too: nobody would read the verdict that is on its way.
            if checked.last:
                await self._end()
        if checked.last:
            # Start the next process now, so that the next grammar need not wait for it.
            self.start()
        return _Verdict(checked.reason, until)

    async def _process(self) -> _Process:
        self.start()
        assert self._starting is not None  # noqa: S101  start() did
        try:
            return await asyncio.shield(self._starting)
        except (OSError, _DiedError, TimeoutError) as error:
            name = self._spec.name
            message = "%s: its grammar process cannot be started"
            logger.exception(message, name, extra={"model": name})
            self._starting = None
            message = "The answer's grammar cannot be checked at the moment. Try again shortly."
            raise UnavailableError(message, retry_after=1) from error

    async def _end(self) -> None:
        starting, self._starting = self._starting, None
        if starting is None:
            return
        starting.cancel()
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await starting.result().close()


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieve a task's exception, which asyncio logs otherwise if nobody waits for it."""
    if not task.cancelled():
        task.exception()


class _Process:
    """A grammar process, from `start` to `close`."""

    def __init__(self, process: asyncio.subprocess.Process, connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._frames = FrameReader()

    @classmethod
    async def start(cls, spec: GenerationSpec) -> _Process:
        """Start a process, and wait until it is ready.

        Raises:
            OSError: It cannot be started.
            _DiedError: It ended at once.
            TimeoutError: It is not ready in time.
        """
        self = cls(
            *await start_child(
                "ovchat_server.engine.genai.grammar_process",
                # More arenas would reserve more address space than the process may use.
                environment={"MALLOC_ARENA_MAX": "2"},
                # Discard the warnings that the compiler prints.
                output=asyncio.subprocess.DEVNULL,
            )
        )
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self._send(encode(GrammarProcessSpec(spec.name, spec.path)))
                await self._receive()
        except BaseException:
            await self.close()
            raise
        return self

    async def ask(self, grammar: str) -> Checked:
        """Have a grammar compiled, and return the verdict.

        Raises:
            _DiedError: The process ended.
        """
        await self._send(encode(Compile(grammar)))
        checked: Checked = msgspec.msgpack.decode(await self._receive(), type=Checked)
        return checked

    async def close(self) -> None:
        """Kill the process and wait for its end."""
        self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def _send(self, frame: bytes) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(self._connection, frame)
        except ConnectionError as error:
            raise _DiedError from error

    async def _receive(self) -> bytes:
        loop = asyncio.get_running_loop()
        while True:
            try:
                data = await loop.sock_recv(self._connection, READ_SIZE)
            except ConnectionError:
                data = b""
            if not data:
                raise _DiedError
            if frames := self._frames.feed(data):
                return frames[0]
