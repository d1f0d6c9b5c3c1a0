"""Checks in a process of its own whether grammars compile.

In the engine, a grammar that does not compile would fail a step for the whole batch, and a
malicious one could block the step for minutes or crash the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ovchat_server.domain.errors import OverloadedError, UnavailableError
from ovchat_server.engine.client.grammar_lane import DIED, GrammarLane, retrieve
from ovchat_server.engine.client.lately_slow import SLOW_FOR, LatelySlow
from ovchat_server.engine.contract.engine import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.generation_spec import GenerationSpec

CACHED_VERDICTS = 4096
# How many grammars may be checked or wait for their check: those of a client, and all.
MAX_WAITING_OF_CLIENT = 64
MAX_WAITING = 512


class _Known(NamedTuple):
    """Why a grammar does not compile, "" if it does, and how long to remember that."""

    reason: str
    until: float


@dataclass(slots=True)
class _Check:
    """A grammar that is being checked, or waits for its turn.

    Attributes:
        waiters: How many wait for it, by client.
    """

    turn: asyncio.Future[GrammarLane]
    task: asyncio.Task[str] = field(init=False)
    waiters: Counter[str] = field(default_factory=Counter)
    begun: bool = False


class GrammarProcess:
    """Checks the grammars of one model and caches the verdicts, "too slow" only for a while.

    One grammar is checked at a time, and clients whose grammars wait take turns. Those of clients
    of whom one was too slow, or ended the process, are checked in a second process for a while.
    """

    def __init__(self, spec: GenerationSpec, clock: Callable[[], float] = time.monotonic) -> None:
        """Check grammars for the model of `spec`; `start` starts the process."""
        self._clock = clock
        self._lane = GrammarLane(spec, stays=True)
        self._slow_lane = GrammarLane(spec, stays=False)
        self._slow_clients = LatelySlow(clock)
        self._verdicts: OrderedDict[bytes, _Known] = OrderedDict()
        self._checks: dict[bytes, _Check] = {}

    def start(self) -> None:
        """Start the process unless it runs; return at once."""
        self._lane.start()

    async def close(self) -> None:
        """End the processes; pending checks raise UnavailableError."""
        checks = [check.task for check in self._checks.values()]
        for check in checks:
            check.cancel()
        if checks:
            await asyncio.wait(checks)
        await self._lane.close()
        await self._slow_lane.close()

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
        if client not in check.waiters:
            self._lane_of(client).turns.enter(client, check.turn)
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
        check.task.add_done_callback(retrieve)
        # Here, because a task that is cancelled before it begins ends nothing itself.
        check.task.add_done_callback(lambda _: _end(check.turn))
        return check

    async def _check(self, check: _Check, key: bytes, grammar: str) -> str:
        try:
            lane = await check.turn
            check.begun = True
            # Also of those who do not wait for the verdict.
            asked = {*check.waiters}
            verdict = await lane.compile(grammar)
        finally:
            self._forget(key, check)
        if verdict.too_slow or verdict.reason == DIED:
            for client in asked.union(check.waiters):
                # Its other grammars are checked apart from those of others.
                self._slow_clients.add(client)
                self._lane.turns.move(client, self._slow_lane.turns)
        until = self._clock() + SLOW_FOR if verdict.too_slow else math.inf
        self._verdicts[key] = _Known(verdict.reason, until)
        if len(self._verdicts) > CACHED_VERDICTS:
            self._verdicts.popitem(last=False)
        return verdict.reason

    def _lane_of(self, client: str) -> GrammarLane:
        return self._slow_lane if client in self._slow_clients else self._lane

    def _forget(self, key: bytes, check: _Check) -> None:
        # Another check of the same grammar may have replaced it.
        if self._checks.get(key) is check:
            del self._checks[key]


def _end(turn: asyncio.Future[GrammarLane]) -> None:
    """End a turn, whether it has come or not."""
    if not turn.cancel() and not turn.cancelled():
        turn.result().turns.end()
