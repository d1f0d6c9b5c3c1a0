"""Decides which sequences are admitted, and which one is preempted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.engine.scheduling.kv_pool import KvPool
    from ovchat_server.engine.scheduling.resume_grammars import ResumeGrammars
    from ovchat_server.engine.scheduling.sequence import ScheduledSequence
    from ovchat_server.engine.scheduling.waiting import WaitingLine


class Admission:
    """Decides by free KV blocks, whose turn it is, and which grammars are compiled."""

    def __init__(self, pool: KvPool, waiting: WaitingLine, resume_grammars: ResumeGrammars) -> None:
        """Admit sequences from `waiting`."""
        self._pool = pool
        self._waiting = waiting
        self._resume_grammars = resume_grammars

    def newcomers(
        self, running: Sequence[ScheduledSequence]
    ) -> Iterator[tuple[ScheduledSequence, str | None]]:
        """Yield the sequences to admit, in order, each with the grammar of the rest of its answer.

        Args:
            running: The running sequences; the caller appends each one yielded before the next.
        """
        self._resume_grammars.look_again()
        # Suspects run alone: if a step fails again, that one is to blame.
        suspects = self._waiting.suspects
        if running and (suspects or any(item.suspect for item in running)):
            return
        passed: set[int] = set()
        # Once a sequence that is never preempted finds no room, others like it wait behind it.
        full = False

        def may_run(item: ScheduledSequence) -> bool:
            if item.request.id in passed or (full and item.never_preempted):
                return False
            return item.suspect or not suspects

        clients = Counter(item.request.client for item in running)
        while (sequence := self._waiting.next(clients, may_run)) is not None:
            if sequence.never_preempted and not self._has_place_to_the_end(sequence, running):
                # Sequences that can be preempted need not wait with it.
                full = True
                continue
            needed = self._pool.needed(sequence)
            taken = sum(map(self._pool.admission_blocks, running))
            if running and taken + needed > self._pool.total:
                break
            grammar = self._resume_grammars.of(sequence)
            # None: it is added with the grammar that it was added with before.
            before = sequence.added.generation.grammar
            if self._resume_grammars.waits(before if grammar is None else grammar):
                passed.add(sequence.request.id)
                continue
            self._waiting.take(sequence)
            yield sequence, grammar
            clients[sequence.request.client] += 1
            if sequence.suspect:
                break

    def preemptible(self, running: Sequence[ScheduledSequence]) -> ScheduledSequence:
        """Return the youngest sequence that can resume where it is, or else the youngest of all.

        Sequences that reserved room for their `max_tokens` come last.
        """
        youngest = running[::-1]
        free = [item for item in youngest if not item.never_preempted] or [*youngest]
        free.sort(key=lambda item: item.request.generation.reserve_max_tokens)
        return next((item for item in free if self._resume_grammars.of(item) is not None), free[0])

    def _has_place_to_the_end(
        self, newcomer: ScheduledSequence, running: Sequence[ScheduledSequence]
    ) -> bool:
        """Return whether all sequences that are never preempted fit at their maximum length."""
        staying = [*filter(lambda item: item.never_preempted, running), newcomer]
        needed = sum(map(self._pool.max_blocks, staying))
        return len(staying) == 1 or needed <= self._pool.total
