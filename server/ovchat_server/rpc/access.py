"""A request id, a record and a line in the access log for every RPC."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
import uuid
from typing import TYPE_CHECKING, ParamSpec

import grpc
import grpc.aio

from ovchat_server.rpc.access_line import Call, line
from ovchat_server.rpc.probes import Exempt, exempt
from ovchat_server.serving.record import current_record
from ovchat_server.telemetry.logs import request_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from ovchat_server.rpc.middleware import Context, Middleware
    from ovchat_server.serving.record import RequestObserver

REQUEST_ID = "x-request-id"
# Ids that callers may choose: they go into logs and headers.
ACCEPTED_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
# Expected of probes: a watch ends when its caller leaves, a model that is loading is no fault, and
# of watches that are too many there is a line for all.
QUIET_STATUSES = (
    grpc.StatusCode.OK,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)

P = ParamSpec("P")

logger = logging.getLogger("ovchat.access")


@contextlib.asynccontextmanager
async def set_request_id(
    context: Context,
    method: str,  # noqa: ARG001  the signature of every middleware
) -> AsyncIterator[None]:
    """Take the caller's request id, or make one, and return it in the trailing metadata."""
    given = dict(context.invocation_metadata() or ()).get(REQUEST_ID)
    valid = isinstance(given, str) and ACCEPTED_ID.fullmatch(given)
    identifier = str(given) if valid else uuid.uuid4().hex
    # No reset: every RPC runs in a task of its own.
    request_id.set(identifier)
    # Trailing, because after initial metadata Envoy cannot set the HTTP status of an error.
    context.set_trailing_metadata(((REQUEST_ID, identifier),))
    yield


def access(observers: Sequence[RequestObserver]) -> Middleware:
    """Return middleware that keeps a record of each RPC, and logs it when it is over.

    Args:
        observers: Are told of the beginning and the end of each, too, in this order.
    """

    @contextlib.asynccontextmanager
    async def recorded(context: Context, method: str) -> AsyncIterator[None]:
        # Read the peer before the call: once a call is cancelled, context.peer() can crash the
        # process (grpcio 1.85.1, SIGSEGV, one in a few cancelled streams).
        metadata = dict(context.invocation_metadata() or ())
        call = Call.of(method, metadata, context.peer() or "")
        record = current_record()
        record.http_method, record.path = call.method, call.path
        record.request_id = request_id.get()
        probe = exempt(method, Exempt.LOG)
        if not probe:
            for observer in observers:
                _told(observer.begin, record, metadata)
        status = grpc.StatusCode.OK
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            # The caller left or stopped reading, its deadline passed, or the server is stopping.
            status = grpc.StatusCode.CANCELLED
            raise
        except grpc.aio.AbortError:
            status = _aborted_status(context)
            raise
        finally:
            record.status, record.ended = status.name, time.monotonic()
            # With an error in its answer, it is about another request, which is refused.
            refuses = status is grpc.StatusCode.OK and record.error is not None
            quiet = probe and status in QUIET_STATUSES and not refuses
            if not quiet:
                for observer in observers:
                    _told(observer.end, record)
            level, message, fields = line(call, record, status)
            logger.log(logging.DEBUG if quiet else level, message, extra=fields)

    return recorded


def _told(tell: Callable[P, None], *args: P.args, **named: P.kwargs) -> None:
    """Tell an observer: whatever is wrong with it is no matter of the request."""
    try:
        tell(*args, **named)
    except Exception:
        logger.exception("A request was not observed")


def _aborted_status(context: Context) -> grpc.StatusCode:
    # grpc 1.85 returns the number of the code that it was given.
    code = context.code()
    known = (status for status in grpc.StatusCode if code in (status, status.value[0]))
    return next(known, grpc.StatusCode.UNKNOWN)
