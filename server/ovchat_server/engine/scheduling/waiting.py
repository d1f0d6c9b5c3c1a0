"""The queue of sequences that wait for admission."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ovchat_server.engine.scheduling.sequence import ScheduledSequence


class WaitingLine:
    """The queue: sequences that ran before come first, as their callers have begun to read.

    Then those with the lowest priority value; among these clients take turns: next is the one with
    the fewest running sequences, or else the one whose turn is the longest ago, with the sequence
    that has the lowest priority value among its own, or the oldest of these.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._sequences: list[ScheduledSequence] = []
        self._turns = itertools.count(1)
        # The last turn of each waiting client, or the turn at which it arrived.
        self._served: dict[str, int] = {}

    def __len__(self) -> int:
        """Return the number of waiting sequences."""
        return len(self._sequences)

    @property
    def suspects(self) -> bool:
        """Whether some of them are suspects."""
        return any(item.suspect for item in self._sequences)

    def add(self, sequence: ScheduledSequence) -> None:
        """Add a sequence."""
        self._sequences.append(sequence)
        self._served.setdefault(sequence.request.client, next(self._turns))

    def next(
        self, running: Mapping[str, int], may_run: Callable[[ScheduledSequence], bool]
    ) -> ScheduledSequence | None:
        """Return the next sequence of those that may run, or None if none may.

        Args:
            running: The number of running sequences of each client.
            may_run: Returns whether a sequence may run.
        """
        waiting = filter(may_run, self._sequences)
        return min(waiting, key=lambda item: self._turn(item, running), default=None)

    def take(self, sequence: ScheduledSequence) -> None:
        """Remove a sequence that was admitted."""
        self._sequences.remove(sequence)
        self._served[sequence.request.client] = next(self._turns)
        self._forget_gone_clients()

    def cancel(self, identifier: int) -> None:
        """Remove the sequence of a request, if it waits."""
        self._sequences = [item for item in self._sequences if item.request.id != identifier]
        self._forget_gone_clients()

    def _forget_gone_clients(self) -> None:
        here = {item.request.client for item in self._sequences}
        for client in self._served.keys() - here:
            del self._served[client]

    def _turn(
        self, sequence: ScheduledSequence, running: Mapping[str, int]
    ) -> tuple[int, int, int, int, int, int]:
        request = sequence.request
        if sequence.has_run:
            return (0, 0, 0, 0, 0, request.id)
        turn = running.get(request.client, 0), self._served[request.client]
        # Ids count upwards.
        return (1, request.priority, *turn, request.own_priority, request.id)
