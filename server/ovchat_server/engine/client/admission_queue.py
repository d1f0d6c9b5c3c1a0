"""Requests that wait for their first place in the engine: how many, for how long, and whose."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.api.errors import OverloadedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ovchat_server.engine.client.generation_stream import EngineGeneration
    from ovchat_server.engine.contract.generation import Caller

# Requests whose first places tell how fast the line moves, and the longest wait that is advised.
REMEMBERED_PLACES = 32
LONGEST_ADVICE = 60.0


@dataclass(slots=True, eq=False)
class _Entry:
    """A request that waits.

    Attributes:
        waiting: Those of its sequences that do.
        timer: Of its patience; None: one of its sequences has run.
    """

    generation: EngineGeneration
    caller: Caller
    waiting: set[int]
    timer: asyncio.TimerHandle | None = field(default=None)


class EntryQueue:
    """Knows who waits; refuses those who would be too many, and those who wait too long."""

    def __init__(
        self,
        most: int,
        patience: float,
        refuse: Callable[[EngineGeneration, OverloadedError], None],
    ) -> None:
        """Nobody waits.

        Args:
            most: Sequences that may. A request is let in whole.
            patience: Seconds that each request waits for its first place.
            refuse: Ends a request that waits.
        """
        self._most = most
        self._patience = patience
        self._refuse = refuse
        # By the ids of the sequences that wait.
        self._entries: dict[int, _Entry] = {}
        # When requests got their first places, since somebody waited last.
        self._places: deque[float] = deque(maxlen=REMEMBERED_PLACES)

    def check(self, caller: Caller) -> None:
        """Refuse who would come behind too many, with no greedier one among them.

        Raises:
            OverloadedError: So it is.
        """
        if len(self._entries) >= self._most and self._greedier(caller) is None:
            raise self._full()

    def enter(self, generation: EngineGeneration, caller: Caller, sequences: Iterable[int]) -> None:
        """A request comes. If there are too many, the last of the greediest client goes.

        Raises:
            OverloadedError: It is that client's.
        """
        self.check(caller)
        if len(self._entries) >= self._most and (other := self._greedier(caller)):
            self._turn_away(other, self._full())
        entry = _Entry(generation, caller, {*sequences})
        loop = asyncio.get_running_loop()
        entry.timer = loop.call_later(self._patience, self._time_out, entry)
        self._entries |= dict.fromkeys(entry.waiting, entry)

    def has_place(self, identifier: int) -> None:
        """A sequence runs for the first time."""
        entry = self._entries.get(identifier)
        if entry and entry.timer:
            entry.timer.cancel()
            entry.timer = None
            self._places.append(asyncio.get_running_loop().time())
        self.leave(identifier)

    def leave(self, identifier: int) -> None:
        """A sequence waits no more, if it did."""
        entry = self._entries.pop(identifier, None)
        if entry is None:
            return
        entry.waiting.discard(identifier)
        if entry.timer and not entry.waiting:
            entry.timer.cancel()
        if not self._entries:
            # What was idle between two rushes is no pace.
            self._places.clear()

    def _greedier(self, caller: Caller) -> _Entry | None:
        """The last request of who goes behind `caller`: by its priority, or by all it has here."""
        waiting = {id(entry): entry for entry in self._entries.values() if entry.timer}
        here = Counter(entry.caller.client for entry in self._entries.values())

        def greed(entry: _Entry) -> tuple[int, int]:
            return entry.caller.priority, here[entry.caller.client]

        # Of several the last one that came.
        other = max([*waiting.values()][::-1], key=greed, default=None)
        if other and greed(other) > (caller.priority, here[caller.client] + 1):
            return other
        return None

    def _time_out(self, entry: _Entry) -> None:
        message = f"The model is overloaded: no place in {self._patience:g} s. Try again later."
        self._turn_away(entry, OverloadedError(message, retry_after=self._advice()))

    def _turn_away(self, entry: _Entry, error: OverloadedError) -> None:
        for identifier in [*entry.waiting]:
            self.leave(identifier)
        self._refuse(entry.generation, error)

    def _full(self) -> OverloadedError:
        message = (
            f"The model is overloaded: {len(self._entries)} requests wait already. Try again later."
        )
        return OverloadedError(message, retry_after=self._advice())

    def _advice(self) -> float:
        """Seconds until those that wait should have had their turn."""
        if len(self._places) < 2:  # noqa: PLR2004  there is no pace of fewer
            return 1.0
        pace = (self._places[-1] - self._places[0]) / (len(self._places) - 1)
        requests = len({id(entry) for entry in self._entries.values()})
        return float(math.ceil(min(max(pace * (requests + 1), 1.0), LONGEST_ADVICE)))
