"""Logs on standard error: a JSON object a line, or text for people."""

from __future__ import annotations

import logging
import os
import sys
from contextvars import ContextVar

from pythonjsonlogger.json import JsonFormatter

from ovchat_server.telemetry.text_logs import TextFormatter

# The id of the request that the current task serves; "" outside of one.
request_id: ContextVar[str] = ContextVar("request_id", default="")


class RequestIdFilter(logging.Filter):
    """Adds to each record the id of the request that it is about."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the id of the current request to a record, and let it pass."""
        if identifier := request_id.get():
            record.request_id = identifier
        return True


class ServerFilter(logging.Filter):
    """Adds to each record which of several servers it is from."""

    def __init__(self, number: int) -> None:
        """Add `number`."""
        super().__init__()
        self._number = number

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the server's number to a record, and let it pass."""
        record.server = self._number
        return True


def decided_format(log_format: str) -> str:
    """Return "text" or "json": `log_format` may also be "auto", which is text on a terminal."""
    if log_format != "auto":
        return log_format
    return "text" if sys.stderr.isatty() else "json"


def has_colours() -> bool:
    """Say whether text in the log is coloured: on a terminal, unless NO_COLOR is set."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def configure_logs(level: str, log_format: str, server: int | None = None) -> None:
    """Send the logs of this process to standard error.

    Args:
        level: The lowest level that is logged, such as "info".
        log_format: "auto", "text" or "json".
        server: Which of several servers this process is.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RequestIdFilter())
    if server is not None:
        handler.addFilter(ServerFilter(server))
    if decided_format(log_format) == "text":
        handler.setFormatter(TextFormatter(colours=has_colours()))
    else:
        handler.setFormatter(
            JsonFormatter(
                "%(levelname)s %(name)s %(message)s",
                timestamp=True,
                rename_fields={"levelname": "level", "name": "logger"},
            )
        )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
