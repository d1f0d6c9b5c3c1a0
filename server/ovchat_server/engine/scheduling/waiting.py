"""Sequences that wait for a place: whose turn it is."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ovchat_server.engine.scheduling.sequence import ScheduledSequence


class WaitingLine:
    """Those that ran before come first, the oldest leading: their callers have begun to read.

    Then those of the lowest priority number; among these clients take turns: the one with the
    fewest sequences running is next, or the one whose turn is the longest ago, with the oldest
    of its own.
    """

    def __init__(self) -> None:
        """Nobody waits."""
        self._sequences: list[ScheduledSequence] = []
        self._turns = itertools.count(1)
        # The last turn of each client that waits, or that which it would have had as it came.
        self._served: dict[str, int] = {}

    def __len__(self) -> int:
        """How many wait."""
        return len(self._sequences)

    @property
    def suspects(self) -> bool:
        """Whether some of them are suspects."""
        return any(item.suspect for item in self._sequences)

    def add(self, sequence: ScheduledSequence) -> None:
        """Queue up."""
        self._sequences.append(sequence)
        self._served.setdefault(sequence.request.client, next(self._turns))

    def next(
        self, running: Mapping[str, int], may_run: Callable[[ScheduledSequence], bool]
    ) -> ScheduledSequence | None:
        """Whose turn it is of those that may run; None where nobody may.

        Args:
            running: How many sequences of each client run.
            may_run: Tells who has to stay.
        """
        waiting = filter(may_run, self._sequences)
        return min(waiting, key=lambda item: self._turn(item, running), default=None)

    def take(self, sequence: ScheduledSequence) -> None:
        """Take out one that waits: it had its turn."""
        self._sequences.remove(sequence)
        self._served[sequence.request.client] = next(self._turns)
        self._forget_who_is_gone()

    def cancel(self, identifier: int) -> None:
        """Take out that of a request, if it waits."""
        self._sequences = [item for item in self._sequences if item.request.id != identifier]
        self._forget_who_is_gone()

    def _forget_who_is_gone(self) -> None:
        """Nobody has to be fair to those who do not wait."""
        here = {item.request.client for item in self._sequences}
        for client in self._served.keys() - here:
            del self._served[client]

    def _turn(
        self, sequence: ScheduledSequence, running: Mapping[str, int]
    ) -> tuple[int, int, int, int, int]:
        request = sequence.request
        if sequence.begun:
            return (0, 0, 0, 0, request.id)
        client = request.client
        # Ids count upwards.
        return (1, request.priority, running.get(client, 0), self._served[client], request.id)
