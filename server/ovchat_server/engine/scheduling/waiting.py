"""The sequences that wait to be admitted, and whose turn it is."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ovchat_server.engine.scheduling.sequence import ScheduledSequence


class WaitingLine:
    """A queue by preemption, priority and fairness between clients.

    Sequences that were admitted before come first, the oldest leading: their callers have begun to
    read. Then those of the lowest priority number. Among these clients take turns: next is the
    client with the fewest running sequences, or else the one whose turn was the longest ago, with
    its oldest sequence.
    """

    def __init__(self) -> None:
        """Begin with an empty line."""
        self._sequences: list[ScheduledSequence] = []
        self._turns = itertools.count(1)
        # The last turn of each client that waits; a new client's counts from its arrival.
        self._served: dict[str, int] = {}

    def __len__(self) -> int:
        """Return how many sequences wait."""
        return len(self._sequences)

    @property
    def suspects(self) -> bool:
        """Whether some of them are suspects (ScheduledSequence)."""
        return any(item.suspect for item in self._sequences)

    def add(self, sequence: ScheduledSequence) -> None:
        """Append a sequence."""
        self._sequences.append(sequence)
        self._served.setdefault(sequence.request.client, next(self._turns))

    def next(
        self, running: Mapping[str, int], may_run: Callable[[ScheduledSequence], bool]
    ) -> ScheduledSequence | None:
        """Return the sequence whose turn it is; None if none may run.

        Args:
            running: Number of running sequences of each client.
            may_run: Returns whether a sequence may be chosen.
        """
        waiting = filter(may_run, self._sequences)
        return min(waiting, key=lambda item: self._turn(item, running), default=None)

    def take(self, sequence: ScheduledSequence) -> None:
        """Remove a sequence that is admitted: its client had its turn."""
        self._sequences.remove(sequence)
        self._served[sequence.request.client] = next(self._turns)
        self._forget_absent_clients()

    def cancel(self, identifier: int) -> None:
        """Remove the sequence of a request, if it waits."""
        self._sequences = [item for item in self._sequences if item.request.id != identifier]
        self._forget_absent_clients()

    def _forget_absent_clients(self) -> None:
        here = {item.request.client for item in self._sequences}
        for client in self._served.keys() - here:
            del self._served[client]

    def _turn(
        self, sequence: ScheduledSequence, running: Mapping[str, int]
    ) -> tuple[int, int, int, int, int]:
        request = sequence.request
        if sequence.has_run:
            return (0, 0, 0, 0, request.id)
        client = request.client
        # Ids count upwards.
        return (1, request.priority, running.get(client, 0), self._served[client], request.id)
