"""A lock that clients take in turns, however many of them wait for it how often."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio

Place = TypeVar("Place")


class Turns(Generic[Place]):
    """One turn at a time is somebody's. It ends with `end`, and the next client has one."""

    def __init__(self, place: Place) -> None:
        """Nobody waits. The result of a turn is `place`."""
        self._place = place
        # By client; the next one is first.
        self._waiting: dict[str, deque[asyncio.Future[Place]]] = {}
        self._taken = False

    def enter(self, client: str, turn: asyncio.Future[Place]) -> None:
        """Wait as a client: `turn` has a result once it is its turn.

        The same turn may wait as several clients, and comes with the first of them. Who gives it
        up cancels it.
        """
        self._waiting.setdefault(client, deque()).append(turn)
        self._go_on()

    def move(self, client: str, other: Turns[Place]) -> None:
        """Have a client wait for others."""
        for turn in self._waiting.pop(client, ()):
            other.enter(client, turn)

    def end(self) -> None:
        """End the turn that has come."""
        self._taken = False
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not self._taken:
            client = next(iter(self._waiting))
            turns = self._waiting.pop(client)
            while turns and turns[0].done():
                turns.popleft()
            if not turns:
                continue
            turns.popleft().set_result(self._place)
            self._taken = True
            if turns:
                self._waiting[client] = turns
