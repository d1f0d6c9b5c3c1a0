"""Logs: one JSON object a line, on standard error."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar

from pythonjsonlogger.json import JsonFormatter

# Of the RPC that the current task serves; "" outside of one.
request_id: ContextVar[str] = ContextVar("request_id", default="")


class RequestIdFilter(logging.Filter):
    """Adds to each record the id of the request that it is about."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let all pass."""
        if identifier := request_id.get():
            record.request_id = identifier
        return True


def configure_logs(level: str) -> None:
    """Send the logs of this process to standard error, from `level` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RequestIdFilter())
    handler.setFormatter(
        JsonFormatter(
            "%(levelname)s %(name)s %(message)s",
            timestamp=True,
            rename_fields={"levelname": "level", "name": "logger"},
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
