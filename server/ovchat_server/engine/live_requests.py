"""Requests under way, whichever process works on them."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.api.errors import InternalError, OverloadedError
from ovchat_server.engine.generation import EngineGeneration
from ovchat_server.engine.messages import Add, Cancel, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.api.errors import ApiError
    from ovchat_server.engine.base import Asker, GenerationRequest
    from ovchat_server.engine.messages import Command, Report

# Processes that may die while a request is on trial. One that dies for another reason at that
# moment must not be enough.
MAX_DEATHS = 3
# Requests whose ends tell how fast the line moves, and the longest wait that is advised.
REMEMBERED_ENDS = 32
LONGEST_ADVICE = 60.0


@dataclass(slots=True)
class _Live:
    add: Add
    generation: EngineGeneration
    said: list[int] = field(default_factory=list)
    admitted: bool = False
    ended: bool = False
    deaths: int = 0

    def remaining(self) -> Add:
        """What another process is to do."""
        return msgspec.structs.replace(self.add, said=tuple(self.said), suspect=self.admitted)


class LiveRequests:
    """Knows what each request has come to, so that another process can go on with it."""

    def __init__(self, send: Callable[[Command], None], max_queue: int, max_wait: float) -> None:
        """Nothing is under way.

        Args:
            send: Reaches the process, if there is one.
            max_queue: Most generations that may wait for their first place.
            max_wait: Seconds that each of them may.
        """
        self._send = send
        self._max_queue = max_queue
        self._max_wait = max_wait
        self._ids = itertools.count(1)
        self._live: dict[int, _Live] = {}
        self._timers: dict[EngineGeneration, asyncio.TimerHandle] = {}
        self._trial: int | None = None
        self._ends: deque[float] = deque(maxlen=REMEMBERED_ENDS)
        # When something was last asked of the process.
        self.asked = 0.0

    @property
    def busy(self) -> bool:
        """Whether the process has something to do."""
        return any(not live.ended for live in self._live.values())

    def check_queue(self) -> None:
        """Refuse what would wait behind too many.

        Raises:
            OverloadedError: There are.
        """
        if len(self._timers) >= self._max_queue:
            message = (
                f"The model is overloaded: {len(self._timers)} requests wait already. "
                "Try again later."
            )
            raise OverloadedError(message, retry_after=self._advice())

    def start(self, requests: Sequence[GenerationRequest], asker: Asker) -> EngineGeneration:
        """Begin a generation.

        Raises:
            OverloadedError: Too many wait already.
        """
        self.check_queue()
        sequences: dict[int, range] = {}
        index = 0
        for request in requests:
            sequences[next(self._ids)] = range(index, index + request.sequences)
            index += request.sequences
        generation = EngineGeneration(sequences, self._cancel, self._forget)
        adds = [_add(*item, asker) for item in zip(sequences, requests, strict=True)]
        self._live |= {add.id: _Live(add, generation) for add in adds}
        loop = asyncio.get_running_loop()
        self._timers[generation] = loop.call_later(self._max_wait, self._time_out, generation)
        self.asked = loop.time()
        self._send(Start(tuple(adds)))
        return generation

    def deliver(self, report: Report) -> None:
        """Hand out what a step brought."""
        for identifier in report.admitted:
            if live := self._live.get(identifier):
                live.admitted = True
                self._waits_no_more(live.generation)
        for news in report.news:
            # Unknown: cancelled while the news was on its way.
            if live := self._live.get(news.id):
                if live.add.beams == 1:
                    live.said += news.tokens
                live.ended = live.ended or news.finish is not None
                live.generation.put(news)
            if news.id == self._trial:
                self._trial = None

    def try_alone(self, identifier: int) -> None:
        """The process begins with a suspect: should it die, it was that one."""
        self._trial = identifier

    def process_died(self) -> None:
        """What it worked on waits for the next one, but for who made it die."""
        suspect = self._live.get(self._trial) if self._trial is not None else None
        self._trial = None
        if suspect:
            suspect.deaths += 1
            if suspect.deaths == MAX_DEATHS:
                suspect.ended = True
                suspect.generation.fail(
                    InternalError(
                        "The model's engine died of this request several times; "
                        "it is not tried again."
                    )
                )

    def resume(self) -> None:
        """Hand everything to a new process."""
        self.asked = asyncio.get_running_loop().time()
        going_on = (live for live in self._live.values() if not live.ended)
        for _, together in itertools.groupby(going_on, lambda live: id(live.generation)):
            self._send(Start(tuple(live.remaining() for live in together)))

    def fail(self, error: Callable[[], ApiError]) -> None:
        """Give everything up."""
        for live in self._live.values():
            live.ended = True
            live.generation.fail(error())

    def _cancel(self, identifier: int) -> None:
        if live := self._live.get(identifier):
            live.ended = True
        self._send(Cancel(identifier))

    def _forget(self, identifier: int) -> None:
        live = self._live.pop(identifier)
        self._waits_no_more(live.generation)
        self._ends.append(asyncio.get_running_loop().time())

    def _waits_no_more(self, generation: EngineGeneration) -> None:
        if timer := self._timers.pop(generation, None):
            timer.cancel()

    def _time_out(self, generation: EngineGeneration) -> None:
        del self._timers[generation]
        message = f"The model is overloaded: no place in {self._max_wait:g} s. Try again later."
        generation.fail(OverloadedError(message, retry_after=self._advice()))

    def _advice(self) -> float:
        """Seconds until those that wait should have had their turn."""
        if len(self._ends) < 2:  # noqa: PLR2004  there is no pace of fewer
            return 1.0
        pace = (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)
        return float(math.ceil(min(max(pace * (len(self._timers) + 1), 1.0), LONGEST_ADVICE)))


def _add(identifier: int, request: GenerationRequest, asker: Asker) -> Add:
    sampling, search = request.sampling, request.search
    return Add(
        id=identifier,
        prompt=request.prompt,
        max_tokens=request.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        min_p=sampling.min_p,
        repetition_penalty=sampling.repetition_penalty,
        seed=sampling.seed,
        beams=search.width if search else 1,
        returned=request.sequences,
        length_penalty=search.length_penalty if search else 1.0,
        min_tokens=request.min_tokens,
        ignore_eos=request.ignore_eos,
        stop_tokens=request.stop_tokens,
        reserve=request.reserve,
        logprobs=request.logprobs,
        grammar=request.grammar,
        closed=request.closed,
        resumptions=request.resumptions,
        client=asker.client,
        priority=asker.priority,
    )
