"""A request id and a line in the access log for every RPC."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
import uuid
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from ovchat_server.rpc.access_line import Call, line
from ovchat_server.rpc.probes import Exempt, exempt
from ovchat_server.serving.record import begin_record
from ovchat_server.telemetry.logs import request_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.rpc.wrapping import Context

REQUEST_ID = "x-request-id"
# What a caller may choose: it goes into logs and headers.
ACCEPTED_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
# Of probes: watches end with their caller, and a model that loads is no fault.
QUIET_STATUSES = (
    grpc.StatusCode.OK,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNAVAILABLE,
)

logger = logging.getLogger("ovchat.access")


@contextlib.asynccontextmanager
async def identify(
    context: Context,
    method: str,  # noqa: ARG001  the same shape as every surrounding
) -> AsyncIterator[None]:
    """Take the caller's request id, or make one, and hand it back."""
    given = dict(context.invocation_metadata() or ()).get(REQUEST_ID)
    valid = isinstance(given, str) and ACCEPTED_ID.fullmatch(given)
    identifier = str(given) if valid else uuid.uuid4().hex
    # Every RPC runs in a task of its own, so nothing is left to reset.
    request_id.set(identifier)
    # Trailing: initial metadata would keep Envoy from giving an error its HTTP status.
    context.set_trailing_metadata(((REQUEST_ID, identifier),))
    yield


@contextlib.asynccontextmanager
async def log_access(context: Context, method: str) -> AsyncIterator[None]:
    """Log the RPC when it is over."""
    start = time.monotonic()
    # Now, not when it is over: once the call is cancelled, asking for its peer crashes the
    # process (grpcio 1.85.1, SIGSEGV, one in a few cancelled streams).
    call = Call.of(method, dict(context.invocation_metadata() or ()), context.peer() or "")
    record = begin_record()
    status = grpc.StatusCode.OK
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit):
        # The caller went away or stopped reading, its deadline passed, or the server stops.
        status = grpc.StatusCode.CANCELLED
        raise
    except grpc.aio.AbortError:
        status = _aborted_status(context)
        raise
    finally:
        level, message, fields = line(call, record, status, time.monotonic() - start)
        quiet = status in QUIET_STATUSES and exempt(method, Exempt.LOG)
        logger.log(logging.DEBUG if quiet else level, message, extra=fields)


def _aborted_status(context: Context) -> grpc.StatusCode:
    # grpc 1.85 hands back what it was given as a number.
    code = context.code()
    known = (status for status in grpc.StatusCode if code in (status, status.value[0]))
    return next(known, grpc.StatusCode.UNKNOWN)


def silence_lost_clients() -> None:
    """Keep gRPC from logging, with a traceback, that a caller gave up what was sent to it.

    It does when an answer is larger than it takes. The line of `log_access` says enough.
    """
    logging.getLogger("grpc._cython.cygrpc").addFilter(_is_no_lost_client)


def _is_no_lost_client(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    # Of an operation of a call that is over already. The class has no public name.
    return kind is None or kind.__name__ != "ExecuteBatchError"
