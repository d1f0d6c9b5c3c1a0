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

from ovchat_server.serving.versions import installed_versions
from ovchat_server.tracing.tracing import Tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from ovchat_server.settings import Settings

PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
GRPC: Final = "grpc"
HTTP: Final = "http/protobuf"
# Seconds between two warnings that traces are not sent.
WARNING_INTERVAL: Final = 60.0

logger = logging.getLogger(__name__)


def exported_traces(settings: Settings) -> Tracing:
    """Return what makes traces and sends them where the settings or the environment say."""
    _pace_warnings()
    exporter = _exporter(settings.otlp_traces_endpoint)
    # No global one, and none that would flush at the exit of the process: `Tracing.close` does.
    provider = TracerProvider(resource=_resource(settings), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider, exporter, content=settings.trace_content)


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


def _pace_warnings() -> None:
    """Have OpenTelemetry's warnings logged as ours, and few of them."""
    # It warns of every try before it gives up.
    logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)
    library = logging.getLogger("opentelemetry")
    library.propagate = False
    library.handlers = [_PacedWarnings(logging.WARNING)]


class _PacedWarnings(logging.Handler):
    """Logs a warning of OpenTelemetry, and then none for a while, from whichever thread."""

    _next = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Log what a record says, or nothing."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + WARNING_INTERVAL
            # It is of many requests, so not with the id of the one that is served just now.
            Context().run(logger.warning, "traces: %s", record.getMessage())
