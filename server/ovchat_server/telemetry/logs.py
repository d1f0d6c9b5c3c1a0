"""Logs: one JSON object per line, on standard error."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar

from pythonjsonlogger.json import JsonFormatter

# The id of the request that the current task serves; "" outside of one.
request_id: ContextVar[str] = ContextVar("request_id", default="")


class RequestIdFilter(logging.Filter):
    """Adds to each record the id of the request that it is about."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the id of the current request to a record, and let it pass."""
        if identifier := request_id.get():
            record.request_id = identifier
        return True


def configure_logs(level: str) -> None:
    """Send the logs of this process to standard error.

    Args:
        level: The least severe level that is logged, such as "info".
    """
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
