"""Finds out whether a grammar can be followed, in a process that may die of it.

A grammar that does not compile throws out of the engine's step for all its requests; one
that is made to can hold it for minutes, or kill it.
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

from ovchat_server.api.errors import UnavailableError
from ovchat_server.engine.client.spawn import start_child
from ovchat_server.engine.contract.frames import FrameReader, encode
from ovchat_server.engine.contract.grammar_messages import Checked, Compile, SandboxSpec

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from ovchat_server.engine.contract.generation_spec import GenerationSpec

READ_SIZE = 1 << 16
CACHED_VERDICTS = 4096
# Grammars that wait for others to be checked.
MAX_WAITING = 64
# Seconds that one is believed to take too long: the machine may have been busy.
SLOW_FOR = 60.0
# Loading the library and the tokenizer takes one, on a busy machine some.
START_TIMEOUT = 60.0
DIED = "compiling it crashes the compiler"

logger = logging.getLogger(__name__)


class _DiedError(Exception):
    """The process ended."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Why a grammar cannot be followed; "" where it can. It is believed until a time."""

    reason: str
    until: float = math.inf


@dataclass(slots=True)
class _Check:
    """A grammar that is checked, or will be when it has its turn."""

    task: asyncio.Task[str] = field(init=False)
    waiters: int = 0
    begun: bool = False


class GrammarSandbox:
    """Checks grammars for one model. Verdicts are kept, good and bad; that it is slow, a while."""

    def __init__(self, spec: GenerationSpec, clock: Callable[[], float] = time.monotonic) -> None:
        """Check for the model of `spec`; starts nothing. `clock` tells seconds."""
        self._spec = spec
        self._clock = clock
        self._verdicts: OrderedDict[bytes, _Verdict] = OrderedDict()
        self._checks: dict[bytes, _Check] = {}
        self._turn = asyncio.Lock()
        self._starting: asyncio.Task[_Process] | None = None

    def start(self) -> None:
        """Start the process, if it does not run; returns at once."""
        if self._starting is None:
            self._starting = asyncio.create_task(_Process.start(self._spec))
            self._starting.add_done_callback(_look_at)

    async def close(self) -> None:
        """End the process, and whoever waits for it."""
        checks = [check.task for check in self._checks.values()]
        for check in checks:
            check.cancel()
        if checks:
            await asyncio.wait(checks)
        await self._end()

    async def check(self, grammar: str) -> str:
        """Why a grammar cannot be followed, a clause for the caller; "" where it can.

        Raises:
            UnavailableError: Too many wait, or there is no process.
        """
        key = hashlib.sha256(grammar.encode()).digest()
        verdict = self._verdicts.get(key)
        if verdict and self._clock() < verdict.until:
            self._verdicts.move_to_end(key)
            return verdict.reason
        if key not in self._checks:
            if len(self._checks) >= MAX_WAITING:
                message = "Too many new grammars wait to be compiled. Try again shortly."
                raise UnavailableError(message, retry_after=1)
            self._checks[key] = check = _Check()
            check.task = asyncio.create_task(self._check(check, key, grammar))
            check.task.add_done_callback(_look_at)
        check = self._checks[key]
        check.waiters += 1
        try:
            # A caller that goes away takes nothing from others who asked for the same.
            await asyncio.wait([check.task])
        finally:
            check.waiters -= 1
            if not (check.waiters or check.begun):
                # Nobody wants to know any more.
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
                    # It may have died before, of something else: once is no proof.
                    verdict = await self._ask(grammar)
        finally:
            self._forget(key, check)
        self._verdicts[key] = verdict
        if len(self._verdicts) > CACHED_VERDICTS:
            self._verdicts.popitem(last=False)
        return verdict.reason

    def _forget(self, key: bytes, check: _Check) -> None:
        # Another may have come in its place.
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
            logger.warning("the grammar sandbox died", extra={"model": self._spec.name})
        finally:
            # Also when cancelled: nobody reads the answer that is on its way.
            if checked.last:
                await self._end()
        if checked.last:
            # The next one need not wait for it.
            self.start()
        return _Verdict(checked.reason, until)

    async def _process(self) -> _Process:
        self.start()
        assert self._starting is not None  # noqa: S101  start() did
        try:
            return await asyncio.shield(self._starting)
        except (OSError, _DiedError, TimeoutError) as error:
            logger.exception("no grammar sandbox", extra={"model": self._spec.name})
            self._starting = None
            message = "Constraints on the answer cannot be checked now. Try again shortly."
            raise UnavailableError(message, retry_after=1) from error

    async def _end(self) -> None:
        starting, self._starting = self._starting, None
        if starting is None:
            return
        starting.cancel()
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await starting.result().close()


def _look_at(task: asyncio.Task[Any]) -> None:
    """Look at how a task ended: whoever waited for it may have gone away."""
    if not task.cancelled():
        task.exception()


class _Process:
    """One process, from `start` to `close`."""

    def __init__(self, process: asyncio.subprocess.Process, connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._frames = FrameReader()

    @classmethod
    async def start(cls, spec: GenerationSpec) -> _Process:
        """Start a process and wait until it takes grammars.

        Raises:
            OSError: It cannot be started.
            _DiedError: It ended at once.
            TimeoutError: It does not get ready.
        """
        self = cls(
            *await start_child(
                "ovchat_server.engine.genai.grammar_process",
                # Each of its threads would reserve as much address space as it may take.
                environment={"MALLOC_ARENA_MAX": "2"},
                # The compiler warns of what was refused before it came there.
                quiet=True,
            )
        )
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self._send(encode(SandboxSpec(spec.name, spec.path)))
                await self._receive()
        except BaseException:
            await self.close()
            raise
        return self

    async def ask(self, grammar: str) -> Checked:
        """What comes of a grammar.

        Raises:
            _DiedError: The end of the process.
        """
        await self._send(encode(Compile(grammar)))
        checked: Checked = msgspec.msgpack.decode(await self._receive(), type=Checked)
        return checked

    async def close(self) -> None:
        """End the process and wait for it."""
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
