"""How traces are sent: by OTLP, as the environment variables of OpenTelemetry say."""

from __future__ import annotations

import logging
import os
import time
from contextvars import Context
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.util.re import parse_env_headers

from ovchat_server.serving.versions import installed_versions
from ovchat_server.start_error import StartError
from ovchat_server.tracing.setup import ENDPOINTS
from ovchat_server.tracing.tracing import Tracing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace.export import SpanExporter

    from ovchat_server.settings import Settings

PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HEADERS: Final = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
OPTION: Final = "--otlp-traces-endpoint"
GRPC: Final = "grpc"
HTTP: Final = "http/protobuf"
# How many spans may wait, and how many are sent together; with content both are fewer, because each
# may take some 100 kB, and collectors take messages of 4 MB.
WAITING, TOGETHER = 2048, 512
WAITING_CONTENT, TOGETHER_CONTENT = 256, 16
# What reads the variables of headers, and warns of what it cannot read: with it.
HEADER_READER: Final = "opentelemetry.util.re"
# Shorter values of headers are no secrets.
SECRET: Final = 6
# Seconds between two warnings that traces are not sent.
WARNING_INTERVAL: Final = 60.0

logger = logging.getLogger(__name__)


def exported_traces(settings: Settings) -> Tracing:
    """Return what makes traces and sends them where the settings or the environment say.

    Raises:
        StartError: They make no sense.
    """
    said, url = _endpoint(settings.otlp_traces_endpoint)
    if "@" in url:
        text = f"{said} must have no user and password, which would be logged: use {HEADERS[1]}"
        raise StartError(text)
    try:
        _pace_warnings(urlsplit(url).query)
        # No global one, and none that would flush at the exit of the process: `Tracing.close` does.
        provider = TracerProvider(resource=_resource(settings), shutdown_on_exit=False)
        exporter = _exporter(settings.otlp_traces_endpoint)
        provider.add_span_processor(_batches(exporter, content=settings.trace_content))
    except Exception as error:
        given = sorted({said, *(name for name in os.environ if name.startswith("OTEL_"))})
        text = f"traces cannot be sent: {error}; one of these is wrong: {', '.join(given)}"
        raise StartError(text) from error
    return Tracing(provider, exporter, content=settings.trace_content)


def _endpoint(option: str | None) -> tuple[str, str]:
    """Return the name of what says where traces are sent, and what it says."""
    named = [(OPTION, option), *((name, os.environ.get(name)) for name in ENDPOINTS)]
    return next((name, url) for name, url in named if url)


def _secrets(query: str) -> Sequence[str]:
    """Return what must not be logged: headers, and the URL's query; the longest first."""
    headers = (parse_env_headers(os.environ.get(name, ""), liberal=True) for name in HEADERS)
    values = [query, *(value for each in headers for value in each.values())]
    # As they are, and as they are quoted.
    forms = {form for value in values for form in (value, repr(value)[1:-1])}
    return sorted((form for form in forms if len(form) >= SECRET), key=len, reverse=True)


def _batches(exporter: SpanExporter, *, content: bool) -> BatchSpanProcessor:
    waiting, together = (WAITING_CONTENT, TOGETHER_CONTENT) if content else (WAITING, TOGETHER)
    queue = _number("OTEL_BSP_MAX_QUEUE_SIZE", waiting)
    batch = min(queue, _number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", together))
    return BatchSpanProcessor(exporter, queue, max_export_batch_size=batch)


def _number(variable: str, default: int) -> int:
    return int(os.environ.get(variable) or default)


def _exporter(endpoint: str | None) -> SpanExporter:
    """Return the exporter of the protocol that is asked for; only its libraries are loaded."""
    protocol = next(filter(None, map(os.environ.get, PROTOCOLS)), GRPC)
    if protocol == HTTP:
        from opentelemetry.exporter.otlp.proto.http import trace_exporter as http  # noqa: PLC0415

        if endpoint and not urlsplit(endpoint).path.strip("/"):
            # Where collectors listen. A path that is given is the whole one, as the variable's.
            endpoint = f"{endpoint.rstrip('/')}/v1/traces"
        return http.OTLPSpanExporter(endpoint)
    if protocol != GRPC:
        text = "traces are sent by grpc: %s is no protocol of OTEL_EXPORTER_OTLP_PROTOCOL here"
        logger.warning(text, protocol)
    from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc  # noqa: PLC0415

    return grpc.OTLPSpanExporter(endpoint)


def _resource(settings: Settings) -> Resource:
    """Return what all spans are about: this server, as far as the environment does not say."""
    ours = {"service.name": "ovchat", "service.version": installed_versions().ovchat}
    if settings.replicas > 1:
        # Not as service.instance.id, which must be unique on all machines: OpenTelemetry makes one.
        ours["ovchat.server"] = str(settings.server_number)
    return Resource.create({**ours, **OTELResourceDetector().detect().attributes})


def _pace_warnings(query: str) -> None:
    """Have OpenTelemetry's warnings logged as ours, and few of them."""
    # It warns of every try before it gives up.
    logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)
    library = logging.getLogger("opentelemetry")
    library.propagate = False
    library.handlers = [_PacedWarnings(query)]


class _PacedWarnings(logging.Handler):
    """Logs a warning of OpenTelemetry, and then none for a while, from whichever thread."""

    def __init__(self, query: str) -> None:
        """Log neither headers nor the `query` of the URL."""
        super().__init__(logging.WARNING)
        self._query = query
        self._next = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Log what a record says, or nothing."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + WARNING_INTERVAL
            # It is of many requests, so not with the id of the one that is served just now.
            Context().run(logger.warning, "traces: %s", self._text(record))

    def _text(self, record: logging.LogRecord) -> str:
        if record.name == HEADER_READER:
            return f"{HEADERS[1]} has something that is not name=value"
        text = record.getMessage()
        if record.exc_info and (error := record.exc_info[1]):
            text += f" {type(error).__name__}: {error}"
        for secret in _secrets(self._query):
            text = text.replace(secret, "...")
        return text
