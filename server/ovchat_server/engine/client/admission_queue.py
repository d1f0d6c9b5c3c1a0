"""Requests that wait for their first place in the engine: how many, for how long, and whose."""

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

# Requests whose first places tell how fast the line moves, and the longest wait that is advised.
REMEMBERED_PLACES = 32
LONGEST_ADVICE = 60.0


@dataclass(slots=True, eq=False)
class _Entry(Generic[T]):
    """Requests that belong together, some of which wait.

    Attributes:
        stream: Where their outputs go.
        waiting: The ids of those that do.
        timer: Ends them; None: one of them has run.
    """

    stream: T
    caller: Caller
    waiting: set[int]
    timer: asyncio.TimerHandle | None = field(default=None)


class AdmissionQueue(Generic[T]):
    """Knows who waits; refuses those who would be too many, and those who wait too long."""

    def __init__(
        self,
        max_waiting: int,
        timeout: float,
        refuse: Callable[[T, OverloadedError], None],
        on_refusal: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create an empty queue.

        Args:
            max_waiting: Requests that may. Those that belong together are let in whole.
            timeout: Seconds that they wait until the first of them has a place.
            refuse: Ends those that wait, by their stream.
            on_refusal: Told of every refusal: what is full, for operators.
        """
        self._max_waiting = max_waiting
        self._timeout = timeout
        self._refuse = refuse
        self._on_refusal = on_refusal
        # By the ids of the requests that wait.
        self._entries: dict[int, _Entry[T]] = {}
        # When requests got their first places, since somebody waited last.
        self._places: deque[float] = deque(maxlen=REMEMBERED_PLACES)

    def check(self, caller: Caller) -> None:
        """Refuse who would come behind too many, with no greedier one among them.

        Raises:
            OverloadedError: So it is.
        """
        if len(self._entries) >= self._max_waiting and self._greedier(caller) is None:
            raise self._full()

    def enter(self, stream: T, caller: Caller, requests: Iterable[int]) -> None:
        """Let requests wait. If there are too many, the last of the greediest client go.

        Raises:
            OverloadedError: These are that client's.
        """
        self.check(caller)
        if len(self._entries) >= self._max_waiting and (other := self._greedier(caller)):
            self._turn_away(other, self._full())
        entry = _Entry(stream, caller, {*requests})
        loop = asyncio.get_running_loop()
        entry.timer = loop.call_later(self._timeout, self._time_out, entry)
        self._entries |= dict.fromkeys(entry.waiting, entry)

    def admitted(self, identifier: int) -> None:
        """Note that a request runs for the first time."""
        entry = self._entries.get(identifier)
        if entry and entry.timer:
            entry.timer.cancel()
            entry.timer = None
            self._places.append(asyncio.get_running_loop().time())
        self.leave(identifier)

    def leave(self, identifier: int) -> None:
        """Take a request out, if it waits."""
        entry = self._entries.pop(identifier, None)
        if entry is None:
            return
        entry.waiting.discard(identifier)
        if entry.timer and not entry.waiting:
            entry.timer.cancel()
        if not self._entries:
            # Idle time between two rushes does not count for the rate.
            self._places.clear()

    def _greedier(self, caller: Caller) -> _Entry[T] | None:
        """Return the last entry of a client that has a worse priority or more entries."""
        waiting = {id(entry): entry for entry in self._entries.values() if entry.timer}
        here = Counter(entry.caller.client for entry in self._entries.values())

        def greed(entry: _Entry[T]) -> tuple[int, int]:
            return entry.caller.priority, here[entry.caller.client]

        # Of several the last one that came.
        other = max([*waiting.values()][::-1], key=greed, default=None)
        if other and greed(other) > (caller.priority, here[caller.client] + 1):
            return other
        return None

    def _time_out(self, entry: _Entry[T]) -> None:
        message = f"The model is overloaded: no place in {self._timeout:g} s. Try again later."
        self._on_refusal(f"a request waited {self._timeout:g} s for a place (max_queue_wait)")
        self._turn_away(entry, OverloadedError(message, retry_after=self._advice()))

    def _turn_away(self, entry: _Entry[T], error: OverloadedError) -> None:
        for identifier in [*entry.waiting]:
            self.leave(identifier)
        self._refuse(entry.stream, error)

    def _full(self) -> OverloadedError:
        waiting = len(self._entries)
        wait = "1 request waits" if waiting == 1 else f"{waiting} requests wait"
        message = f"The model is overloaded: {wait} already. Try again later."
        self._on_refusal(f"{wait} and {self._max_waiting} may (max_queue)")
        return OverloadedError(message, retry_after=self._advice())

    def _advice(self) -> float:
        """Estimate the seconds until those that wait have had their turn."""
        if len(self._places) < 2:  # noqa: PLR2004  there is no pace of fewer
            return 1.0
        pace = (self._places[-1] - self._places[0]) / (len(self._places) - 1)
        requests = len({id(entry) for entry in self._entries.values()})
        return float(math.ceil(min(max(pace * (requests + 1), 1.0), LONGEST_ADVICE)))
