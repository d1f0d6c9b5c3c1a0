"""Requests under way, whichever process works on them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.api.errors import InternalError
from ovchat_server.engine.client.admission_queue import EntryQueue
from ovchat_server.engine.client.generation_stream import EngineGeneration
from ovchat_server.engine.contract.generation_messages import SequenceOutput, SequenceRequest
from ovchat_server.engine.contract.messages import Cancel, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.api.errors import ApiError, OverloadedError
    from ovchat_server.engine.contract.generation import Caller, GenerationRequest
    from ovchat_server.engine.contract.messages import Report

# Processes that may die while a request is on trial. One that dies for another reason at that
# moment must not be enough.
MAX_DEATHS = 3


@dataclass(slots=True)
class _Live:
    request: SequenceRequest
    generation: EngineGeneration
    generated: list[int] = field(default_factory=list)
    # Steps since its place in this process, and the most that it ran for in one that died.
    steps: int = 0
    ran: int = 0
    admitted: bool = False
    ended: bool = False
    cancelled: bool = False
    deaths: int = 0

    def remaining(self) -> SequenceRequest:
        """What another process is to do."""
        self.steps, self.ran = 0, max(self.steps, self.ran)
        return msgspec.structs.replace(
            self.request,
            generated=tuple(self.generated),
            suspect=self.admitted,
            ran=self.ran,
        )


class LiveRequests:
    """Knows what each request has come to, so that another process can go on with it."""

    def __init__(
        self,
        send: Callable[[Start[SequenceRequest] | Cancel], None],
        max_queue: int,
        max_wait: float,
        trouble: Callable[[], ApiError | None],
    ) -> None:
        """Nothing is under way.

        Args:
            send: Reaches the process, if there is one.
            max_queue: Most sequences that may wait for their first place.
            max_wait: Seconds that each request may.
            trouble: Why nobody has a place now, if it is not for want of room.
        """
        self._send = send
        self._trouble = trouble
        self._ids = itertools.count(1)
        self._live: dict[int, _Live] = {}
        self._queue = EntryQueue(max_queue, max_wait, self._turn_away)
        # Those that tell nothing before their end.
        self._searches: set[int] = set()
        self._trial: int | None = None

    def check_queue(self, caller: Caller) -> None:
        """Refuse who would wait behind too many.

        Raises:
            OverloadedError: There are.
        """
        self._queue.check(caller)

    def start(self, requests: Sequence[GenerationRequest], caller: Caller) -> EngineGeneration:
        """Begin a generation.

        Raises:
            OverloadedError: Too many wait already.
        """
        sequences: dict[int, range] = {}
        index = 0
        for request in requests:
            sequences[next(self._ids)] = range(index, index + request.sequences)
            index += request.sequences
        generation = EngineGeneration(sequences, self._cancel, self._forget)
        started = tuple(
            SequenceRequest(identifier, request, client=caller.client, priority=caller.priority)
            for identifier, request in zip(sequences, requests, strict=True)
        )
        self._queue.enter(generation, caller, sequences)
        self._live |= {item.id: _Live(item, generation) for item in started}
        self._searches |= {item.id for item in started if item.generation.beams > 1}
        self._send(Start(started))
        return generation

    def deliver(self, report: Report[SequenceOutput]) -> None:
        """Hand out what a step brought."""
        for identifier in report.admitted:
            if live := self._live.get(identifier):
                live.admitted = True
                self._queue.has_place(identifier)
        for identifier in self._searches:
            live = self._live[identifier]
            live.steps += live.admitted
        for output in report.outputs:
            # Else it was cancelled while the output was on its way.
            if (live := self._live.get(output.id)) and not live.cancelled:
                if live.request.generation.beams == 1:
                    live.generated += output.tokens
                live.ended = live.ended or output.finish is not None
                live.generation.put(output)

    def try_alone(self, identifier: int | None) -> None:
        """The process begins with a suspect: should it die, it was that one. None: it is none."""
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
            live.ended = live.cancelled = True
        self._queue.leave(identifier)
        self._send(Cancel(identifier))

    def _forget(self, identifier: int) -> None:
        del self._live[identifier]
        self._searches.discard(identifier)
        self._queue.leave(identifier)

    def _turn_away(self, generation: EngineGeneration, error: OverloadedError) -> None:
        """End what waited in vain."""
        for identifier, live in self._live.items():
            if live.generation is generation:
                self._cancel(identifier)
        generation.fail(self._trouble() or error)
