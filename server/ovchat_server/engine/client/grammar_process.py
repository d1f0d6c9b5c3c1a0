"""Checks in a process of its own whether grammars compile.

In the engine, a grammar that does not compile would fail a step for the whole batch, and a
malicious one could block the step for minutes or crash the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ovchat_server.domain.errors import OverloadedError, UnavailableError
from ovchat_server.engine.client.grammar_child import GrammarChild, GrammarChildDiedError
from ovchat_server.engine.client.turns import Turns
from ovchat_server.engine.contract.engine import ANONYMOUS
from ovchat_server.engine.contract.grammar_messages import Checked

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.generation_spec import GenerationSpec

CACHED_VERDICTS = 4096
# How many grammars may be checked or wait for their check: those of a client, and all.
MAX_WAITING_OF_CLIENT = 64
MAX_WAITING = 512
# Seconds for which "too slow" is remembered: the machine may have been busy.
SLOW_FOR = 60.0
DIED = "compiling it crashes the compiler"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Why a grammar does not compile, "" if it does, and how long to remember that."""

    reason: str
    until: float = math.inf


@dataclass(slots=True)
class _Check:
    """A grammar that is being checked, or waits for its turn.

    Attributes:
        waiters: How many wait for it, by client.
    """

    turn: asyncio.Future[None]
    task: asyncio.Task[str] = field(init=False)
    waiters: Counter[str] = field(default_factory=Counter)
    begun: bool = False


class GrammarProcess:
    """Checks the grammars of one model and caches the verdicts, "too slow" only for a while.

    One grammar is checked at a time, and clients whose grammars wait take turns: a slow one of one
    client delays another's by the time that one check may take.
    """

    def __init__(self, spec: GenerationSpec, clock: Callable[[], float] = time.monotonic) -> None:
        """Check grammars for the model of `spec`; `start` starts the process."""
        self._spec = spec
        self._clock = clock
        self._verdicts: OrderedDict[bytes, _Verdict] = OrderedDict()
        self._checks: dict[bytes, _Check] = {}
        self._turns = Turns()
        self._starting: asyncio.Task[GrammarChild] | None = None

    def start(self) -> None:
        """Start the process unless it runs; return at once."""
        if self._starting is None:
            self._starting = asyncio.create_task(GrammarChild.start(self._spec))
            self._starting.add_done_callback(_retrieve)

    async def close(self) -> None:
        """End the process; pending checks raise UnavailableError."""
        checks = [check.task for check in self._checks.values()]
        for check in checks:
            check.cancel()
        if checks:
            await asyncio.wait(checks)
        await self._end()

    async def check(self, grammar: str, caller: Caller = ANONYMOUS) -> str:
        """Return why a grammar does not compile, as a clause for the caller; "" if it does.

        It may be cancelled without affecting others who wait for the same grammar.

        Args:
            grammar: As the compiler reads it.
            caller: Who asks.

        Raises:
            OverloadedError: Too many of the caller's grammars wait.
            UnavailableError: Too many grammars wait, or the process cannot be started.
        """
        key = hashlib.sha256(grammar.encode()).digest()
        verdict = self._verdicts.get(key)
        if verdict and self._clock() < verdict.until:
            self._verdicts.move_to_end(key)
            return verdict.reason
        check, client = self._checks.get(key), caller.client
        if check is None or client not in check.waiters:
            self._check_quota(client)
        if check is None:
            check = self._new_check(key, grammar)
        if client not in check.waiters and not check.begun:
            self._turns.enter(client, check.turn)
        check.waiters[client] += 1
        try:
            # Cancelling one caller must not cancel the check: others may wait for it.
            await asyncio.wait([check.task])
        finally:
            check.waiters[client] -= 1
            check.waiters += Counter()
            if not (check.waiters or check.begun):
                # Nobody waits for this check any more.
                check.task.cancel()
                self._forget(key, check)
        if check.task.cancelled():
            raise UnavailableError("The server is stopping.", retry_after=1)
        return check.task.result()

    def _check_quota(self, client: str) -> None:
        """Refuse one more grammar that waits.

        Raises:
            OverloadedError: The client has too many.
            UnavailableError: All have.
        """
        own = sum(client in check.waiters for check in self._checks.values())
        if own >= MAX_WAITING_OF_CLIENT:
            message = f"{own} new grammars of yours are waiting to be compiled. Try again shortly."
            raise OverloadedError(message, retry_after=1)
        if len(self._checks) >= MAX_WAITING:
            message = "Too many new grammars are waiting to be compiled. Try again shortly."
            raise UnavailableError(message, retry_after=1)

    def _new_check(self, key: bytes, grammar: str) -> _Check:
        self._checks[key] = check = _Check(asyncio.get_running_loop().create_future())
        check.task = asyncio.create_task(self._check(check, key, grammar))
        check.task.add_done_callback(_retrieve)
        # Here, because a task that is cancelled before it begins ends nothing itself.
        check.task.add_done_callback(lambda _: self._turns.end(check.turn))
        return check

    async def _check(self, check: _Check, key: bytes, grammar: str) -> str:
        try:
            await check.turn
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
        except GrammarChildDiedError:
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

    async def _process(self) -> GrammarChild:
        self.start()
        assert self._starting is not None  # noqa: S101  start() did
        try:
            return await asyncio.shield(self._starting)
        except (OSError, GrammarChildDiedError, TimeoutError) as error:
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
