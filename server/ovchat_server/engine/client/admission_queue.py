"""The queue of requests that wait for their admission: how many, for how long, and whose."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from ovchat_server.domain.errors import OverloadedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ovchat_server.engine.contract.engine import Caller

T = TypeVar("T")

# How many admissions the pace of the queue is estimated from, and the longest Retry-After.
REMEMBERED_ADMISSIONS = 32
MAX_RETRY_AFTER = 60.0


@dataclass(slots=True, eq=False)
class _Entry(Generic[T]):
    """Requests that belong together, some of which wait.

    Attributes:
        stream: Receives their outputs.
        waiting: The ids of those that wait.
        timer: Refuses them when it expires; None once one of them has been admitted.
    """

    stream: T
    caller: Caller
    waiting: set[int]
    timer: asyncio.TimerHandle | None = field(default=None)


class AdmissionQueue(Generic[T]):
    """Keeps track of waiting requests, and refuses those that are too many or wait too long."""

    def __init__(
        self,
        max_waiting: int,
        timeout: float,
        refuse: Callable[[T, OverloadedError], None],
        on_refusal: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create an empty queue.

        Args:
            max_waiting: How many requests may wait. Requests that belong together may exceed it.
            timeout: How many seconds requests that belong together wait for the first admission.
            refuse: Ends waiting requests, given their stream.
            on_refusal: Called on every refusal with what is full, for operators.
        """
        self._max_waiting = max_waiting
        self._timeout = timeout
        self._refuse = refuse
        self._on_refusal = on_refusal
        # By the ids of the requests that wait.
        self._entries: dict[int, _Entry[T]] = {}
        # When requests were admitted, since the queue was empty.
        self._admissions: deque[float] = deque(maxlen=REMEMBERED_ADMISSIONS)

    def check(self, caller: Caller) -> None:
        """Raise if the queue is full and the request would replace none that waits.

        Raises:
            OverloadedError: The queue is full.
        """
        if len(self._entries) >= self._max_waiting and self._replaceable(caller) is None:
            raise self._full()

    def enter(self, stream: T, caller: Caller, requests: Iterable[int]) -> None:
        """Queue requests. If the queue is full, refuse the last ones of the greediest client.

        Raises:
            OverloadedError: That client is the caller, whose other requests are as urgent.
        """
        self.check(caller)
        if len(self._entries) >= self._max_waiting and (other := self._replaceable(caller)):
            self._refuse_entry(other, self._full())
        entry = _Entry(stream, caller, {*requests})
        loop = asyncio.get_running_loop()
        entry.timer = loop.call_later(self._timeout, self._time_out, entry)
        self._entries |= dict.fromkeys(entry.waiting, entry)

    def admitted(self, identifier: int) -> None:
        """Note that a request was admitted."""
        entry = self._entries.get(identifier)
        if entry and entry.timer:
            entry.timer.cancel()
            entry.timer = None
            self._admissions.append(asyncio.get_running_loop().time())
        self.leave(identifier)

    def leave(self, identifier: int) -> None:
        """Remove a request, if it waits."""
        entry = self._entries.pop(identifier, None)
        if entry is None:
            return
        entry.waiting.discard(identifier)
        if entry.timer and not entry.waiting:
            entry.timer.cancel()
        if not self._entries:
            # Idle time between two rushes must not count for the pace.
            self._admissions.clear()

    def _replaceable(self, caller: Caller) -> _Entry[T] | None:
        """Return the entry that a request of the caller would replace; None: it has to go itself.

        Of the client with the worst priority, or the most entries; otherwise of the caller's own.
        """
        here = Counter(entry.caller.client for entry in self._entries.values())

        def greed(entry: _Entry[T]) -> tuple[int, int]:
            return entry.caller.shared_priority, here[entry.caller.client]

        def own_priority(entry: _Entry[T]) -> int:
            return entry.caller.priority

        # Reversed, so that of several the newest is chosen.
        waiting = {id(entry): entry for entry in self._entries.values() if entry.timer}
        newest = [*waiting.values()][::-1]
        other = max(newest, key=greed, default=None)
        if other and greed(other) > (caller.shared_priority, here[caller.client] + 1):
            client = other.caller.client
            return max((item for item in newest if item.caller.client == client), key=own_priority)
        own = (item for item in newest if item.caller.client == caller.client)
        worst = max(own, key=own_priority, default=None)
        return worst if worst and worst.caller.priority > caller.priority else None

    def _time_out(self, entry: _Entry[T]) -> None:
        late = f"request was not admitted within {self._timeout:g} s"
        message = f"The model is overloaded: the {late}. Try again later."
        self._on_refusal(f"a {late} (max_queue_wait)")
        self._refuse_entry(entry, OverloadedError(message, retry_after=self._retry_after()))

    def _refuse_entry(self, entry: _Entry[T], error: OverloadedError) -> None:
        for identifier in [*entry.waiting]:
            self.leave(identifier)
        self._refuse(entry.stream, error)

    def _full(self) -> OverloadedError:
        waiting = len(self._entries)
        wait = "1 request is waiting" if waiting == 1 else f"{waiting} requests are waiting"
        message = f"The model is overloaded: {wait} already. Try again later."
        self._on_refusal(f"{wait}, of at most {self._max_waiting} (max_queue)")
        return OverloadedError(message, retry_after=self._retry_after())

    def _retry_after(self) -> float:
        """Estimate the seconds until the requests that wait now have been admitted."""
        times = self._admissions
        if len(times) < 2:  # noqa: PLR2004  two admissions make a pace
            return 1.0
        pace = (times[-1] - times[0]) / (len(times) - 1)
        requests = len({id(entry) for entry in self._entries.values()})
        return float(math.ceil(min(max(pace * (requests + 1), 1.0), MAX_RETRY_AFTER)))
