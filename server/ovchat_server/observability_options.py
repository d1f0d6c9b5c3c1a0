"""The options of logs, metrics and traces; see `options`."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from ovchat_server.option_types import Setting, Switch, Value, Word

SECTION: Final = "Logs, metrics, traces"
PORT = Value(Annotated[int, Meta(ge=0, le=65535)], "PORT")
FORMAT = Word(Literal["auto", "text", "json"], "FORMAT")
LEVEL = Word(Literal["debug", "info", "warning", "error"], "LEVEL")
URL = Value(
    Annotated[str, Meta(pattern="^https?://[^/]", description="http://HOST:PORT or https://...")],
    "URL",
)
# In the order of --help.
OBSERVABILITY: Final = (
    Setting(
        "--log-level",
        LEVEL,
        "Lowest level to log: debug, info, warning or error.",
        section=SECTION,
        default="info",
    ),
    Setting(
        "--log-format",
        FORMAT,
        "Log as text or json; auto: text on a terminal, else json.",
        section=SECTION,
        default="auto",
    ),
    Setting(
        "--metrics-host",
        Value(str, "ADDRESS"),
        "Address that --metrics-port is on; 0.0.0.0 for all interfaces. No API key is asked for.",
        section=SECTION,
        default="127.0.0.1",
    ),
    Setting(
        "--metrics-port",
        PORT,
        "Port of GET /metrics, for Prometheus; 0 picks a free one.",
        section=SECTION,
        default=9464,
    ),
    Setting(
        "--otlp-traces-endpoint",
        URL,
        "Where traces are sent to by OTLP, such as http://127.0.0.1:4317. By default where "
        "OTEL_EXPORTER_OTLP_ENDPOINT says; without it there are none.",
        section=SECTION,
    ),
    Setting(
        "--trace-content/--no-trace-content",
        Switch(),
        "Have prompts and answers in traces.",
        section=SECTION,
        default=False,
        show_default=False,
    ),
)
