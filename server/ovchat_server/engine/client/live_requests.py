"""Requests under way, whichever process works on them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ovchat_server.domain.errors import InternalError
from ovchat_server.engine.client.admission_queue import AdmissionQueue
from ovchat_server.engine.contract.messages import Cancel, Output, OutputT, Request, RequestT, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ovchat_server.domain.errors import ApiError, OverloadedError
    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.messages import Report

RequestT_co = TypeVar("RequestT_co", bound=Request, covariant=True)
OutputT_contra = TypeVar("OutputT_contra", bound=Output, contravariant=True)

# Processes that may die while a request runs alone. One that dies for another reason at that
# moment must not be enough.
MAX_DEATHS = 3


class ResultStream(Protocol[OutputT_contra]):
    """Where the outputs of requests that belong together go."""

    def admit(self) -> None:
        """Note that one of them has a place in the engine."""
        ...

    def put(self, output: OutputT_contra) -> None:
        """Take in an output of one of them."""
        ...

    def fail(self, error: ApiError) -> None:
        """End with an error, after what has come until now. Only the first one counts."""
        ...


class Progress(Protocol[RequestT_co, OutputT_contra]):
    """A request, and how far it has come: what a kind of work knows of it."""

    @property
    def request(self) -> RequestT_co:
        """Return the request as it was made."""
        ...

    def note(self, output: OutputT_contra) -> None:
        """Remember what another process need not do again."""
        ...

    def remaining(self, steps: int, *, suspect: bool) -> RequestT_co:
        """Return what another process is to do.

        Args:
            steps: Steps since the request had a place in the last process.
            suspect: It had one when the process died.
        """
        ...


@dataclass(slots=True)
class _Live(Generic[RequestT, OutputT]):
    """A request under way.

    Attributes:
        since: Reports that had come when it got its place in this process.
    """

    progress: Progress[RequestT, OutputT]
    stream: ResultStream[OutputT]
    since: int = 0
    admitted: bool = False
    ended: bool = False
    cancelled: bool = False
    deaths: int = 0


class LiveRequests(Generic[RequestT, OutputT]):
    """Keeps what each request has generated, so that another process can continue it."""

    def __init__(
        self,
        send: Callable[[Start[RequestT] | Cancel], None],
        max_queue: int,
        max_wait: float,
        trouble: Callable[[], ApiError | None],
        on_overload: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Begin with no requests.

        Args:
            send: Sends to the process, if there is one.
            max_queue: The maximum number of requests that wait to be admitted.
            max_wait: The maximum number of seconds that each of them waits.
            trouble: Returns why nothing is admitted now, if not for lack of room.
            on_overload: Told what is full when a request is refused for lack of room.
        """
        self._send = send
        self._trouble = trouble
        self._on_overload = on_overload
        self._ids = itertools.count(1)
        self._live: dict[int, _Live[RequestT, OutputT]] = {}
        self._queue = AdmissionQueue[ResultStream[OutputT]](
            max_queue, max_wait, self._turn_away, self._note_refusal
        )
        self._reports = 0
        self._isolated: int | None = None

    def check_queue(self, caller: Caller) -> None:
        """Refuse a request if too many wait already.

        Raises:
            OverloadedError: Too many wait.
        """
        self._queue.check(caller)

    def new_id(self) -> int:
        """Return an id for a request; none comes twice."""
        return next(self._ids)

    def start(
        self,
        requests: Iterable[Progress[RequestT, OutputT]],
        stream: ResultStream[OutputT],
        caller: Caller,
    ) -> None:
        """Begin requests that belong together.

        Raises:
            OverloadedError: Too many wait already.
        """
        started = {item.request.id: item for item in requests}
        self._queue.enter(stream, caller, started)
        self._live |= {key: _Live(item, stream, self._reports) for key, item in started.items()}
        self._send(Start(tuple(item.request for item in started.values())))

    def cancel(self, identifier: int) -> None:
        """Give a request up; nothing more comes of it. One that is not here is no error."""
        if live := self._live.get(identifier):
            live.ended = live.cancelled = True
        self._queue.leave(identifier)
        self._send(Cancel(identifier))

    def forget(self, identifier: int) -> None:
        """Drop a request that nobody reads any more."""
        del self._live[identifier]
        self._queue.leave(identifier)

    def deliver(self, report: Report[OutputT]) -> None:
        """Deliver the outputs of a step to their streams."""
        for identifier in report.admitted:
            if live := self._live.get(identifier):
                live.admitted, live.since = True, self._reports
                self._queue.admitted(identifier)
                live.stream.admit()
        self._reports += 1
        for output in report.outputs:
            # Else it was cancelled while the output was on its way.
            if (live := self._live.get(output.id)) and not live.cancelled:
                live.progress.note(output)
                live.ended = live.ended or output.finish is not None
                live.stream.put(output)

    def isolate(self, identifier: int | None) -> None:
        """Note that a suspect runs alone: should the process die, it was that one. None: none."""
        self._isolated = identifier

    def process_died(self) -> None:
        """Keep the requests for the next process, except one that made several of them die."""
        suspect = self._live.get(self._isolated) if self._isolated is not None else None
        self._isolated = None
        if suspect:
            suspect.deaths += 1
            if suspect.deaths == MAX_DEATHS:
                suspect.ended = True
                suspect.stream.fail(
                    InternalError(
                        "The model's engine died of this request several times; "
                        "it is not tried again."
                    )
                )

    def resume(self) -> None:
        """Send everything to a new process."""
        going_on = (live for live in self._live.values() if not live.ended)
        for _, together in itertools.groupby(going_on, lambda live: id(live.stream)):
            self._send(Start(tuple(map(self._remaining, together))))

    def fail(self, error: Callable[[], ApiError]) -> None:
        """Fail all requests."""
        for live in self._live.values():
            live.ended = True
            live.stream.fail(error())

    def _remaining(self, live: _Live[RequestT, OutputT]) -> RequestT:
        steps = self._reports - live.since if live.admitted else 0
        live.since = self._reports
        return live.progress.remaining(steps, suspect=live.admitted)

    def _note_refusal(self, full: str) -> None:
        if not self._trouble():
            self._on_overload(full)

    def _turn_away(self, stream: ResultStream[OutputT], error: OverloadedError) -> None:
        """Fail requests that waited in vain."""
        for identifier, live in self._live.items():
            if live.stream is stream:
                self.cancel(identifier)
        stream.fail(self._trouble() or error)
