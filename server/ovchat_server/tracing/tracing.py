"""A span of every request, with a child for each part of the work."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ovchat_server.serving.recorded_content import MOST, RecordedContent
from ovchat_server.tracing.attributes import at_fault, attributes, periods, span_name
from ovchat_server.tracing.content import content_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

    from ovchat_server.domain.errors import ApiError
    from ovchat_server.serving.record import RequestRecord

# Seconds that the last spans of a server which stops get to reach the collector; `ovchat up` kills
# a server that takes too long to stop.
END_SECONDS: Final = 1.0
# W3C's traceparent and tracestate. Its baggage is for nobody here.
PROPAGATOR: Final = TraceContextTextMapPropagator()


@dataclass(frozen=True, slots=True)
class _Open:
    """The span of a request under way, and what `end` needs for it.

    Attributes:
        offset: From `time.monotonic` to the time since the epoch, in nanoseconds; one for the whole
            request, so that its times stay in order when the system's clock is set.
    """

    span: Span
    offset: int

    def at(self, seconds: float) -> int:
        """Return a time in nanoseconds since the epoch."""
        return int(seconds * 1e9) + self.offset


class Tracing:
    """Makes spans of requests and has them sent; a RequestObserver."""

    def __init__(
        self, provider: TracerProvider, exporter: SpanExporter, *, content: bool = False
    ) -> None:
        """Trace nothing yet.

        Args:
            provider: Makes spans.
            exporter: Sends them.
            content: Whether they have prompts and answers.
        """
        self._provider = provider
        self._exporter = exporter
        self._content = content
        self._tracer = provider.get_tracer("ovchat")
        # By the identity of their records.
        self._open: dict[int, _Open] = {}

    def begin(self, record: RequestRecord, metadata: Mapping[str, str | bytes]) -> None:
        """Begin the span of a request, in its caller's trace if it is in one."""
        carrier = {name: value for name, value in metadata.items() if isinstance(value, str)}
        caller = PROPAGATOR.extract(carrier, Context())
        offset = time.time_ns() - time.monotonic_ns()
        began = int(record.began * 1e9) + offset
        span = self._tracer.start_span(record.rpc, caller, SpanKind.SERVER, start_time=began)
        record.trace_id = format_trace_id(span.get_span_context().trace_id)
        PROPAGATOR.inject(record.trace_headers, set_span_in_context(span, caller))
        if span.is_recording():
            self._open[id(record)] = _Open(span, offset)
            if self._content:
                record.content = RecordedContent()

    def end(self, record: RequestRecord) -> None:
        """End the span of a request. Its children are made here, of what the record says."""
        if (opened := self._open.pop(id(record), None)) is None:
            return
        span, at = opened.span, opened.at
        within = set_span_in_context(span, Context())
        for stage in periods(record):
            child = self._tracer.start_span(stage.name, within, start_time=at(stage.began))
            child.end(at(stage.ended))
        span.update_name(span_name(record))
        for name, value in attributes(record).items():
            if value is not None:
                span.set_attribute(name, value)
        for what, when in record.times.interruptions:
            span.add_event(what, timestamp=at(when))
        if record.content:
            span.set_attributes(content_attributes(record.content))
        if record.error:
            span.add_event("exception", self._exception(record.error), at(record.ended))
        if at_fault(record):
            span.set_status(StatusCode.ERROR)
        span.end(at(record.ended))

    def _exception(self, error: ApiError) -> dict[str, str]:
        told = {"exception.type": type(error).__name__}
        # Messages repeat what is wrong in a prompt.
        return told | {"exception.message": error.message[:MOST]} if self._content else told

    async def close(self) -> None:
        """Send what was not sent yet, for a moment at most."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            # The loop may not have waited for it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ended.set)

        # Not in the loop's own threads, which the end of the process would wait for.
        threading.Thread(target=shut_down, name="traces", daemon=True).start()
        try:
            async with asyncio.timeout(END_SECONDS):
                await ended.wait()
        except TimeoutError:
            # Ends what is under way, and its retries.
            self._exporter.shutdown()
