"""Ends answers whose grammars slow down those of others.

Which tokens a grammar allows is found within a step, for all answers together, and can take a
second where a grammar is ambiguous. While steps take too long, each answer is followed once more,
alone and in another process, which shows whose grammar is slow.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import OverloadedError, UnavailableError
from ovchat_server.engine.client.grammar_lane import DIED, GrammarLane
from ovchat_server.engine.client.slow_clients import SlowClients
from ovchat_server.engine.contract.generation_engine import SlowGrammarError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.client.in_flight_requests import InFlightRequests, ResumableRequest
    from ovchat_server.engine.contract.generation_messages import SequenceOutput, SequenceRequest
    from ovchat_server.engine.contract.generation_spec import GenerationSpec
    from ovchat_server.engine.contract.messages import Report

# The weight of a step against those before it.
WEIGHT = 0.25
# The answers of a client share what a step may take, and a bit is left. Each has this part of it at
# least, which only grammars need that are ambiguous.
LEAST_SHARE = 0.1
# An answer is followed again when it is so many times as long, and so many tokens longer.
GROWTH, MORE = 1.25, 8
# One harms nobody else.
MIN_CLIENTS = 2

logger = logging.getLogger(__name__)


class MaskBudget:
    """Watches how long steps take to choose tokens, and ends answers that need too much of it.

    As long as there is one client, its grammars may be slow: nobody else waits for them. Those of
    whom an answer was ended have one with a grammar at a time, for a while.
    """

    def __init__(
        self,
        spec: GenerationSpec,
        in_flight: InFlightRequests[SequenceRequest, SequenceOutput],
        refuse: Callable[[str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch an engine.

        Args:
            spec: The model's.
            in_flight: Its requests.
            refuse: Is told of a slow grammar, and why it is; see GrammarProcess.refuse.
            clock: Returns seconds.
        """
        self._name, self._budget = spec.name, spec.options.max_mask_seconds
        self._in_flight = in_flight
        self._refuse = refuse
        # It runs only once steps were slow.
        self._lane = GrammarLane(spec, stays=False, follows=True)
        self._slow_clients = SlowClients(clock)
        # How long steps take to choose tokens, and for all before: the mean of the last ones.
        self._seconds = self._model_seconds = 0.0
        # By id: how long an answer has to be to be followed again.
        self._followed: dict[int, float] = {}
        self._search: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """End the search, and the process."""
        if self._search:
            self._search.cancel()
            await asyncio.wait([self._search])
        await self._lane.close()

    def check(self, client: str) -> None:
        """Refuse one more answer with a grammar.

        Raises:
            OverloadedError: One of the client's was slow, and another one is under way.
        """
        under_way = any(item.request.client == client for item in self._constrained())
        if client in self._slow_clients and under_way:
            message = (
                "A grammar of yours was slow, so that for a minute one answer with a grammar is "
                "served to you at a time. Try again shortly."
            )
            raise OverloadedError(message, retry_after=1)

    def note(self, report: Report[SequenceOutput]) -> None:
        """Note how long a step took; if that is too long, search for the slow ones."""
        model_seconds = max(report.ended - report.began - report.sampling, 0)
        self._seconds += WEIGHT * (report.sampling - self._seconds)
        self._model_seconds += WEIGHT * (model_seconds - self._model_seconds)
        if self._search is None and self._next():
            self._search = asyncio.create_task(self._find())
            self._search.add_done_callback(self._found)

    def _limit(self, client: str) -> float:
        """Return how long steps may take before the answers of a client are followed."""
        return self._most * (LEAST_SHARE if client in self._slow_clients else 1)

    @property
    def _most(self) -> float:
        """How long a step may take: where the model takes longer, the rest is no harm."""
        return max(self._budget, self._model_seconds)

    async def _find(self) -> None:
        """Follow one answer after the other, while steps are slow."""
        under_way = {item.request.id for item in self._in_flight.requests}
        self._followed = {key: self._followed[key] for key in self._followed.keys() & under_way}
        while suspect := self._next():
            # Also where following fails.
            self._followed[suspect.id] = GROWTH * len(suspect.generated) + MORE
            await self._follow(suspect)

    def _found(self, search: asyncio.Task[None]) -> None:
        self._search = None
        if not search.cancelled() and (error := search.exception()):
            message = "%s: the search for slow grammars failed"
            logger.error(message, self._name, exc_info=error, extra={"model": self._name})

    def _constrained(self) -> list[ResumableRequest[SequenceRequest, SequenceOutput]]:
        """Return the answers under way that follow grammars."""
        return [item for item in self._in_flight.requests if item.request.generation.grammar]

    def _next(self) -> SequenceRequest | None:
        """Return the answer to follow next: the shortest one, which takes least."""
        if not self._budget or self._seconds <= self._most * LEAST_SHARE:
            return None
        if len({item.request.client for item in self._in_flight.requests}) < MIN_CLIENTS:
            return None
        suspects = [
            item.remaining(0, suspect=False)
            for item in self._constrained()
            if self._seconds > self._limit(item.request.client)
        ]
        due = [item for item in suspects if len(item.generated) >= self._followed.get(item.id, 1)]
        return min(due, key=lambda item: len(item.generated), default=None)

    async def _follow(self, suspect: SequenceRequest) -> None:
        """Follow an answer; if that is slow, end it, and others with the same grammar."""
        grammar, client = suspect.generation.grammar, suspect.client
        number = sum(item.request.client == client for item in self._constrained())
        share = max(self._limit(client) / (number + 1), self._most * LEAST_SHARE)
        try:
            verdict = await self._lane.follow(grammar, suspect.generated, share)
        except UnavailableError:
            # It was logged.
            return
        # The engine did not die of it: it may be something else.
        if verdict.reason in ("", DIED):
            return
        message = "%s: answers end whose grammar is slow to follow: %s"
        logger.warning(message, self._name, verdict.reason, extra={"model": self._name})
        self._refuse(grammar, verdict.reason)
        self._slow_clients.add(client)
        for item in self._constrained():
            if item.request.generation.grammar == grammar:
                self._in_flight.end(item.request.id, SlowGrammarError(verdict.reason))
