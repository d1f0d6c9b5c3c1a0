"""Collectors of traces: they take what is exported by OTLP, over gRPC or HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as wire
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as services
from opentelemetry.proto.trace.v1.trace_pb2 import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Attributes: TypeAlias = dict[str, Any]
KINDS = Span.SpanKind
# Seconds between two looks: what another process sends has no event.
PAUSE = 0.01


def values(attributes: Any) -> Attributes:
    """Attributes as a dictionary of plain values."""
    return {item.key: _plain(item.value) for item in attributes}


def _plain(value: Any) -> Any:
    which = value.WhichOneof("value")
    if which == "array_value":
        return [_plain(item) for item in value.array_value.values]
    return getattr(value, which)


class Caller:
    """A client that is in a trace of its own."""

    def __init__(self, *, sampled: bool = True) -> None:
        self.trace_id = secrets.token_hex(16)
        self.span_id = secrets.token_hex(8)
        self.traceparent = f"00-{self.trace_id}-{self.span_id}-0{int(sampled)}"

    @property
    def headers(self) -> dict[str, str]:
        return {"traceparent": self.traceparent, "tracestate": "vendor=value"}


@dataclass(frozen=True)
class Exported:
    """A span, with whose it is."""

    span: Span
    resource: Attributes

    @property
    def name(self) -> str:
        return self.span.name

    @property
    def trace_id(self) -> str:
        return self.span.trace_id.hex()

    @property
    def span_id(self) -> str:
        return self.span.span_id.hex()

    @property
    def parent(self) -> str:
        return self.span.parent_span_id.hex()

    @property
    def times(self) -> tuple[int, int]:
        return self.span.start_time_unix_nano, self.span.end_time_unix_nano

    @property
    def of_server(self) -> bool:
        return self.span.kind == KINDS.Value("SPAN_KIND_SERVER")

    @property
    def attributes(self) -> Attributes:
        return values(self.span.attributes)

    @property
    def events(self) -> dict[str, Attributes]:
        return {event.name: values(event.attributes) for event in self.span.events}

    @property
    def failed(self) -> bool:
        return self.span.status.code == self.span.status.STATUS_CODE_ERROR


@dataclass
class Trace:
    """The span of a request, and its children in the order in which they began."""

    server: Exported
    children: list[Exported]

    @property
    def names(self) -> list[str]:
        return [child.name for child in self.children]


@dataclass
class Collector:
    """What was exported so far. It takes it in threads, so that a test may block its event loop.

    Attributes:
        endpoint: Where it is sent.
        bodies: The requests, as they came.
        headers: Those of each.
    """

    endpoint: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, Any]] = field(default_factory=list)
    spans: list[Exported] = field(default_factory=list)

    def take(self, body: bytes, headers: dict[str, Any]) -> None:
        self.bodies.append(body)
        self.headers.append(headers)
        for resource in wire.ExportTraceServiceRequest.FromString(body).resource_spans:
            about = values(resource.resource.attributes)
            for scope in resource.scope_spans:
                self.spans += [Exported(span, about) for span in scope.spans]

    async def until(self, wanted: Callable[[Exported], bool]) -> Exported:
        """The span that is wanted; until it comes."""
        while not (found := [*filter(wanted, self.spans)]):  # noqa: ASYNC110  no event
            await asyncio.sleep(PAUSE)
        return found[0]

    async def trace(self, caller: str) -> Trace:
        """What was asked within a span. A span comes after its children, which end before it."""
        server = await self.until(lambda span: span.parent == caller and span.of_server)
        # Of another server that was asked the trace is its own.
        inside = [span for span in self.spans if not span.of_server]
        children = [span for span in inside if span.parent == server.span_id]
        return Trace(server, sorted(children, key=lambda item: item.span.start_time_unix_nano))


class _TraceService(services.TraceServiceServicer):
    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  gRPC's name
        metadata = dict(context.invocation_metadata())
        self._collector.take(request.SerializeToString(), metadata)
        return wire.ExportTraceServiceResponse()


@contextlib.contextmanager
def grpc_collector() -> Iterator[Collector]:
    server = grpc.server(ThreadPoolExecutor(2))
    collector = Collector(f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
    services.add_TraceServiceServicer_to_server(_TraceService(collector), server)
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait()


@contextlib.contextmanager
def http_collector() -> Iterator[Collector]:
    """It takes traces at the path where collectors do, and no other."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found = self.path == "/v1/traces"
            if found:
                collector.take(body, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(200 if found else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.endpoint = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield collector
        finally:
            server.shutdown()
