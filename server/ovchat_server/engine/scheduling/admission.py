"""Which waiting sequences are admitted, and which running ones are preempted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.engine.scheduling.kv_pool import KvPool
    from ovchat_server.engine.scheduling.resume_grammars import RestGrammars
    from ovchat_server.engine.scheduling.sequence import ScheduledSequence
    from ovchat_server.engine.scheduling.waiting import WaitingLine


class Admission:
    """Admits by the blocks of a pool, the order of the queue, and which grammars are compiled."""

    def __init__(self, pool: KvPool, waiting: WaitingLine, rest_grammars: RestGrammars) -> None:
        """Admit from `waiting`."""
        self._pool = pool
        self._waiting = waiting
        self._rest_grammars = rest_grammars

    def newcomers(
        self, running: Sequence[ScheduledSequence]
    ) -> Iterator[tuple[ScheduledSequence, str | None]]:
        """Take the sequences that may run out of the queue, each with the grammar of its rest.

        Args:
            running: The running sequences; a yielded one is among them before the next is drawn.
        """
        self._rest_grammars.look_again()
        # Suspects run isolated: if a step fails again, the suspect is at fault.
        suspects = self._waiting.suspects
        if running and (suspects or any(item.suspect for item in running)):
            return
        passed: set[int] = set()
        # Once one that cannot be preempted is not admitted, those like it wait behind it.
        full = False

        def may_run(item: ScheduledSequence) -> bool:
            if item.request.id in passed or (full and item.stays):
                return False
            return item.suspect or not suspects

        clients = Counter(item.request.client for item in running)
        while (sequence := self._waiting.next(clients, may_run)) is not None:
            if sequence.stays and not self._has_place_to_the_end(sequence, running):
                # Others need not wait with it.
                full = True
                continue
            needed = self._pool.needed(sequence)
            taken = sum(map(self._pool.expected, running))
            if running and taken + needed > self._pool.total:
                break
            grammar = self._rest_grammars.of(sequence)
            # Without one it is added as it was before.
            begun = sequence.added.generation.grammar
            if self._rest_grammars.waits(begun if grammar is None else grammar):
                passed.add(sequence.request.id)
                continue
            self._waiting.take(sequence)
            yield sequence, grammar
            clients[sequence.request.client] += 1
            if sequence.suspect:
                break

    def preemptible(self, running: Sequence[ScheduledSequence]) -> ScheduledSequence:
        """Return the youngest sequence that can be resumed where it is, or else the youngest other.

        Sequences within their reservation come after those without one.
        """
        youngest = running[::-1]
        free = [item for item in youngest if not item.stays] or [*youngest]
        free.sort(key=lambda item: item.request.generation.reserve)
        return next((item for item in free if self._rest_grammars.of(item) is not None), free[0])

    def _has_place_to_the_end(
        self, newcomer: ScheduledSequence, running: Sequence[ScheduledSequence]
    ) -> bool:
        """Return whether sequences that are not preempted leave room for another's full length."""
        staying = [*filter(lambda item: item.stays, running), newcomer]
        needed = sum(map(self._pool.at_most, staying))
        return len(staying) == 1 or needed <= self._pool.total
