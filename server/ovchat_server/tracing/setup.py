"""Whether there are traces; OpenTelemetry is loaded only if so, because that takes a while."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.settings import Settings
    from ovchat_server.tracing.tracing import Tracing

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def tracing(settings: Settings) -> Sequence[Tracing]:
    """Return what makes traces of requests and sends them; nothing if they are off."""
    if not _wanted(settings):
        return ()
    from ovchat_server.tracing.export import exported_traces  # noqa: PLC0415

    return (exported_traces(settings),)


def _wanted(settings: Settings) -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if settings.otlp_traces_endpoint:
        return True
    none = os.environ.get("OTEL_TRACES_EXPORTER", "").strip() == "none"
    return not none and any(map(os.environ.get, ENDPOINTS))
