"""What gRPC's own loggers may write: nothing that a caller chose, and not much."""

from __future__ import annotations

import logging
from typing import Final

_LOGGERS: Final = ("grpc._cython.cygrpc", "grpc._common", "grpc._server")
# Of a message, in characters.
_MOST: Final = 300


def bound_grpc_log() -> None:
    """Keep gRPC from logging headers, long lines, and tracebacks about callers that left."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_passes)


def _passes(record: logging.LogRecord) -> bool:
    # A header that is no UTF-8: it would be written several times for each call, key or no key.
    # `header_values` refuses the call.
    if str(record.msg).startswith("Invalid encoding on"):
        return False
    # Raised by an operation on a call that is over: its caller left before it had read its answer.
    # The access log has a line about it, which is enough. The class has no public name.
    kind = record.exc_info[0] if record.exc_info else None
    if kind is not None and kind.__name__ == "ExecuteBatchError":
        return False
    record.msg, record.args = record.getMessage()[:_MOST], ()
    return True
