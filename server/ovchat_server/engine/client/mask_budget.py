"""Ends answers whose grammars slow down those of others.

Which tokens a grammar allows is found within a step, for all answers together, and can take a
second where a grammar is ambiguous. While steps take too long, each answer is followed once more,
alone and in another process, which shows whose grammar is slow.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import time
from typing import TYPE_CHECKING, TypeAlias

from ovchat_server.domain.errors import OverloadedError, UnavailableError
from ovchat_server.engine.client.grammar_lane import DIED, GrammarLane
from ovchat_server.engine.client.lately_slow import LatelySlow
from ovchat_server.engine.contract.generation_engine import SlowGrammarError
from ovchat_server.engine.contract.grammar_messages import SLOW_TO_FOLLOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.client.in_flight_requests import InFlightRequests, ResumableRequest
    from ovchat_server.engine.contract.generation_messages import SequenceOutput, SequenceRequest
    from ovchat_server.engine.contract.generation_spec import GenerationSpec
    from ovchat_server.engine.contract.messages import Report

    # And how many outputs it has brought.
    Answer: TypeAlias = tuple[ResumableRequest[SequenceRequest, SequenceOutput], int]

# The weight of a step against those before it.
WEIGHT = 0.25
# The part of the time of steps that each answer has at least, which only grammars need that are
# ambiguous. Clients of whom one was slow have no more for all of theirs.
LEAST_SHARE = 0.1
# An answer is followed again when it is so many times as long, and so many outputs longer.
GROWTH, MORE = 1.25, 8
# One harms nobody else.
MIN_CLIENTS = 2

logger = logging.getLogger(__name__)


class MaskBudget:
    """Watches how long steps take to choose tokens, and ends answers that need too much of it.

    As long as there is one client, its grammars may be slow: nobody else waits for them. Those of
    whom an answer was ended have one request with a grammar at a time, for a while.
    """

    def __init__(
        self,
        spec: GenerationSpec,
        in_flight: InFlightRequests[SequenceRequest, SequenceOutput],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch an engine.

        Args:
            spec: The model's.
            in_flight: Its requests.
            clock: Returns seconds.
        """
        self._name, self._budget = spec.name, spec.options.max_mask_seconds
        self._in_flight = in_flight
        # Its process is started once steps were slow, and stays.
        self._lane = GrammarLane(spec, stays=False, follows=True)
        self._slow_clients = LatelySlow(clock)
        # By client, as a client of whom one was slow is allowed less than others.
        self._slow_grammars = LatelySlow(clock)
        # How long steps take to choose tokens, and for all before: the mean of the last ones.
        self._seconds = self._model_seconds = 0.0
        # By id: how many outputs an answer has to have to be followed again.
        self._followed: dict[int, float] = {}
        self._search: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """End the search, and the process."""
        if self._search:
            self._search.cancel()
            await asyncio.wait([self._search])
        await self._lane.close()

    def refusal(self, grammar: str, client: str) -> str:
        """Return why a client's grammar is refused; "" if it is not."""
        return SLOW_TO_FOLLOW if _key(client, grammar) in self._slow_grammars else ""

    def check(self, client: str) -> None:
        """Refuse one more request with a grammar.

        Raises:
            OverloadedError: One of the client's was slow, and another one is under way.
        """
        under_way = any(item.request.client == client for item, _ in self._answers())
        if client in self._slow_clients and under_way:
            message = (
                "A grammar of yours was slow, so that for a minute one request with a grammar is "
                "served to you at a time. Try again shortly."
            )
            raise OverloadedError(message, retry_after=1)

    def note(self, report: Report[SequenceOutput]) -> None:
        """Note how long a step took; if that is too long, search for the slow ones."""
        if not report.ended:
            return
        model_seconds = max(report.ended - report.began - report.sampling, 0)
        self._seconds += WEIGHT * (report.sampling - self._seconds)
        self._model_seconds += WEIGHT * (model_seconds - self._model_seconds)
        if self._search is None and self._due():
            self._search = asyncio.create_task(self._find())
            self._search.add_done_callback(self._found)

    @property
    def _most(self) -> float:
        """How long a step may take: where the model takes longer, the rest is no harm."""
        return max(self._budget, self._model_seconds)

    def _limit(self, client: str) -> float:
        """Return how long steps may take before the answers of a client are followed."""
        return self._most * (LEAST_SHARE if client in self._slow_clients else 1)

    def _share(self, client: str) -> float:
        """Return how much of that each of its answers may take; a bit is left."""
        running = sum(item.request.client == client for item, outputs in self._answers() if outputs)
        return max(self._limit(client) / (running + 1), self._most * LEAST_SHARE)

    async def _find(self) -> None:
        """Follow one answer after the other, while steps are slow."""
        # In turn the one that takes least, and the one that is due longest: it would never be
        # followed beside short ones that come and go.
        for shortest in itertools.cycle((True, False)):
            due = self._due()
            if not due:
                return
            item, outputs = min(due, key=_length) if shortest else max(due, key=self._overdue)
            # Also where following fails.
            self._followed[item.request.id] = GROWTH * outputs + MORE
            await self._follow(item)
            under_way = {item.request.id for item, _ in self._answers()}
            self._followed = {key: self._followed[key] for key in self._followed.keys() & under_way}

    def _found(self, search: asyncio.Task[None]) -> None:
        self._search = None
        if not search.cancelled() and (error := search.exception()):
            message = "%s: the search for slow grammars failed"
            logger.error(message, self._name, exc_info=error, extra={"model": self._name})

    def _answers(self) -> list[Answer]:
        """Return the answers under way that follow grammars."""
        return [
            answer for answer in self._in_flight.requests if answer[0].request.generation.grammar
        ]

    def _due(self) -> list[Answer]:
        """Return the answers that are to be followed."""
        # Below it nobody's limit is exceeded.
        if not self._budget or self._seconds <= self._most * LEAST_SHARE:
            return []
        if len({item.request.client for item, _ in self._in_flight.requests}) < MIN_CLIENTS:
            return []
        return [
            answer
            for answer in self._answers()
            if self._seconds > self._limit(answer[0].request.client) and self._overdue(answer) >= 1
        ]

    def _overdue(self, answer: Answer) -> float:
        """Return how many times as long an answer is as it has to be to be followed again."""
        item, outputs = answer
        return outputs / self._followed.get(item.request.id, 1)

    async def _follow(self, suspect: ResumableRequest[SequenceRequest, SequenceOutput]) -> None:
        """Follow an answer; if that is slow, end it, and others of the client with its grammar."""
        request = suspect.remaining(0, suspect=False)
        grammar, client = request.generation.grammar, request.client
        try:
            verdict = await self._lane.follow(grammar, request.generated, self._share(client))
        except UnavailableError:
            # It was logged.
            return
        # The engine did not die of it: it may be something else.
        if verdict.reason in ("", DIED):
            return
        message = "%s: answers end whose grammar is slow to follow"
        logger.warning(message, self._name, extra={"model": self._name})
        self._slow_grammars.add(_key(client, grammar))
        self._slow_clients.add(client)
        for item, _ in self._answers():
            if (item.request.client, item.request.generation.grammar) == (client, grammar):
                self._in_flight.end(item.request.id, SlowGrammarError(verdict.reason))


def _length(answer: Answer) -> int:
    return answer[1]


def _key(client: str, grammar: str) -> tuple[str, bytes]:
    return client, hashlib.sha256(grammar.encode()).digest()
