"""Requests in flight, whichever process works on them."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ovchat_server.domain.errors import InternalError
from ovchat_server.engine.client.admission_queue import AdmissionQueue
from ovchat_server.engine.contract.messages import (
    FAILURES,
    Cancel,
    Output,
    OutputT,
    Request,
    RequestT,
    Start,
)
from ovchat_server.engine.contract.observer import Unobserved
from ovchat_server.engine.contract.times import Interruption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ovchat_server.domain.errors import ApiError, OverloadedError
    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.messages import Report
    from ovchat_server.engine.contract.observer import EngineObserver
    from ovchat_server.engine.contract.times import RequestTimes

RequestT_co = TypeVar("RequestT_co", bound=Request, covariant=True)
OutputT_contra = TypeVar("OutputT_contra", bound=Output, contravariant=True)

# How many processes may die while a request runs alone before the request is blamed. One is not
# enough: a process may die at that moment for another reason.
MAX_CRASHES = 3


class ResultStream(Protocol[OutputT_contra]):
    """Receives the outputs of requests that belong together.

    Attributes:
        times: When what happened to them.
    """

    times: RequestTimes

    def admit(self) -> None:
        """Note that one of the requests was admitted."""
        ...

    def put(self, output: OutputT_contra) -> None:
        """Take an output of one of the requests."""
        ...

    def fail(self, error: ApiError) -> None:
        """End with an error, after the outputs so far. Only the first error counts."""
        ...


class ResumableRequest(Protocol[RequestT_co, OutputT_contra]):
    """A request and its progress, so that another process can resume it."""

    @property
    def request(self) -> RequestT_co:
        """Return the request as it was made."""
        ...

    def note(self, output: OutputT_contra) -> None:
        """Remember an output, which another process need not compute again."""
        ...

    def remaining(self, steps: int, *, suspect: bool) -> RequestT_co:
        """Return the request that another process has to run.

        Args:
            steps: How many steps the last process took since it admitted the request.
            suspect: Whether the request was running when that process died.
        """
        ...


@dataclass(slots=True)
class _Entry(Generic[RequestT, OutputT]):
    """A request in flight.

    Attributes:
        since: How many reports had arrived when this process admitted it.
        outputs: How many it has brought.
        last_output: When the step ended that brought its last output; 0: there was none.
    """

    resumable: ResumableRequest[RequestT, OutputT]
    stream: ResultStream[OutputT]
    since: int = 0
    outputs: int = 0
    last_output: float = 0.0
    admitted: bool = False
    ended: bool = False
    cancelled: bool = False
    crash_count: int = 0


class InFlightRequests(Generic[RequestT, OutputT]):
    """Keeps each request and its outputs, so that another process can resume it.

    Attributes:
        observer: Is told of reports, and of requests that are resumed.
        on_report: Is called with each report, once its outputs are delivered.
    """

    def __init__(
        self,
        send: Callable[[Start[RequestT] | Cancel], None],
        max_queue: int,
        max_wait: float,
        unavailable_reason: Callable[[], ApiError | None],
        on_overload: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Begin with no requests.

        Args:
            send: Sends to the process, if there is one.
            max_queue: How many requests may wait to be admitted.
            max_wait: How many seconds each of them may wait.
            unavailable_reason: Returns why the engine admits nothing now; None if it could.
            on_overload: Called with what is full when a request is refused for lack of room.
        """
        self._send = send
        self._unavailable_reason = unavailable_reason
        self.observer: EngineObserver[OutputT] = Unobserved()
        self.on_report: Callable[[Report[OutputT]], None] = lambda _: None
        self._on_overload = on_overload
        self._ids = itertools.count(1)
        self._in_flight: dict[int, _Entry[RequestT, OutputT]] = {}
        self._queue = AdmissionQueue[ResultStream[OutputT]](
            max_queue, max_wait, self._turn_away, self._note_refusal
        )
        self._reports = 0
        self._isolated: int | None = None

    def check_queue(self, caller: Caller) -> None:
        """Refuse a request if the queue is full.

        Raises:
            OverloadedError: The queue is full.
        """
        self._queue.check(caller)

    @property
    def unfinished(self) -> int:
        """The number of requests that wait or run."""
        return len(self._unfinished())

    @property
    def requests(self) -> list[tuple[ResumableRequest[RequestT, OutputT], int]]:
        """The requests that wait or run, and how many outputs each has brought."""
        return [(entry.resumable, entry.outputs) for entry in self._unfinished()]

    def new_id(self) -> int:
        """Return a new, unique request id."""
        return next(self._ids)

    def start(
        self,
        requests: Iterable[ResumableRequest[RequestT, OutputT]],
        stream: ResultStream[OutputT],
        caller: Caller,
    ) -> None:
        """Start requests that belong together.

        Raises:
            OverloadedError: The queue is full.
        """
        started = {item.request.id: item for item in requests}
        self._queue.enter(stream, caller, started)
        stream.times.queued = time.monotonic()
        self._in_flight |= {
            key: _Entry(item, stream, self._reports) for key, item in started.items()
        }
        self._send(Start(tuple(item.request for item in started.values())))

    def cancel(self, identifier: int) -> None:
        """Cancel a request: no more outputs are delivered. An unknown id is no error."""
        if entry := self._in_flight.get(identifier):
            entry.ended = entry.cancelled = True
        self._queue.leave(identifier)
        self._send(Cancel(identifier))

    def end(self, identifier: int, error: ApiError) -> None:
        """End a request, and those that belong to it, with an error. An unknown id is none."""
        if entry := self._in_flight.get(identifier):
            self._end(entry.stream, error)

    def forget(self, identifier: int) -> None:
        """Forget a request whose outputs nobody reads any more."""
        del self._in_flight[identifier]
        self._queue.leave(identifier)

    def deliver(self, report: Report[OutputT]) -> None:
        """Deliver the outputs of a step to their streams."""
        self._note_places(report)
        self._reports += 1
        gaps: dict[float, int] = {}
        for output in report.outputs:
            # An output of a cancelled request may still have been in the socket.
            if (entry := self._in_flight.get(output.id)) and not entry.cancelled:
                if output.finish not in FAILURES:
                    # Most have the same gap: that between this step and the one before.
                    if 0 < entry.last_output < report.ended:
                        gap = report.ended - entry.last_output
                        gaps[gap] = gaps.get(gap, 0) + 1
                    entry.last_output = report.ended
                    entry.stream.times.output(report.ended)
                entry.resumable.note(output)
                entry.outputs += 1
                entry.ended = entry.ended or output.finish is not None
                entry.stream.put(output)
        self.observer.stepped(report, gaps)
        self.on_report(report)

    def _note_places(self, report: Report[OutputT]) -> None:
        """Note who got or lost a place in the engine."""
        for identifier in report.admitted:
            if entry := self._in_flight.get(identifier):
                entry.admitted, entry.since = True, self._reports
                self._queue.admitted(identifier)
                entry.stream.times.admit(report.began)
                entry.stream.admit()
        for identifiers, what in (
            (report.preempted, Interruption.PREEMPTED),
            (report.resumed, Interruption.RESUMED),
        ):
            for identifier in identifiers:
                if entry := self._in_flight.get(identifier):
                    entry.stream.times.interrupt(what, report.began)

    def isolate(self, identifier: int | None) -> None:
        """Note which suspect runs alone, to be blamed if the process dies; None: none does."""
        self._isolated = identifier

    def process_died(self) -> None:
        """Keep all requests for the next process, except one that has crashed several."""
        now = time.monotonic()
        # Of requests that belong together once.
        for stream in {id(entry.stream): entry.stream for entry in self._unfinished()}.values():
            stream.times.interrupt(Interruption.RESTARTED, now)
        suspect = self._in_flight.get(self._isolated) if self._isolated is not None else None
        self._isolated = None
        if suspect:
            suspect.crash_count += 1
            if suspect.crash_count == MAX_CRASHES:
                suspect.ended = True
                suspect.stream.fail(
                    InternalError(
                        "The model's engine crashed several times on this request, "
                        "which is not tried again."
                    )
                )

    def resume(self) -> None:
        """Send all unfinished requests to a new process."""
        unfinished = self._unfinished()
        # The others are new to it.
        self.observer.resumed(sum(entry.admitted for entry in unfinished))
        for _, together in itertools.groupby(unfinished, lambda entry: id(entry.stream)):
            self._send(Start(tuple(map(self._remaining, together))))

    def fail(self, error: Callable[[], ApiError]) -> None:
        """Fail all requests."""
        for entry in self._in_flight.values():
            entry.ended = True
            entry.stream.fail(error())

    def _unfinished(self) -> list[_Entry[RequestT, OutputT]]:
        # Of a copy: a scrape asks in another thread.
        return [entry for entry in [*self._in_flight.values()] if not entry.ended]

    def _remaining(self, entry: _Entry[RequestT, OutputT]) -> RequestT:
        steps = self._reports - entry.since if entry.admitted else 0
        entry.since = self._reports
        return entry.resumable.remaining(steps, suspect=entry.admitted)

    def _note_refusal(self, full: str) -> None:
        if not self._unavailable_reason():
            self._on_overload(full)

    def _turn_away(self, stream: ResultStream[OutputT], error: OverloadedError) -> None:
        """Fail requests that were not admitted in time."""
        self._end(stream, self._unavailable_reason() or error)

    def _end(self, stream: ResultStream[OutputT], error: ApiError) -> None:
        for identifier, entry in self._in_flight.items():
            if entry.stream is stream:
                self.cancel(identifier)
        stream.fail(error)
