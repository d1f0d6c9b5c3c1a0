"""Errors on the gRPC wire, and on the way to REST callers through Envoy."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import grpc
import grpc.aio
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from ovchat_server.domain.errors import ApiError, InternalError
from ovchat_server.serving.record import current_record
from ovchat_server.telemetry.logs import request_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from google.protobuf.message import Message

    from ovchat_server.rpc.middleware import Context, Middleware

# Encodes an error for REST callers, given the full method name: returns the body, in ASCII, and the
# HTTP status unless it is the one that Envoy derives from the gRPC status.
RestErrorEncoder: TypeAlias = Callable[[str, ApiError], tuple[str, int | None]]

DOMAIN = "ovchat"
# Envoy sets this header on transcoded requests, and removes it from what callers send.
REST_MARK = "x-envoy-original-path"

logger = logging.getLogger(__name__)


def error_translation(rest_error: RestErrorEncoder) -> Middleware:
    """Return middleware that turns exceptions into gRPC statuses.

    Args:
        rest_error: Encodes errors for REST callers. The result travels in headers, from which
            a Lua filter in Envoy writes the body and the status.
    """

    @contextlib.asynccontextmanager
    async def translate(context: Context, method: str) -> AsyncIterator[None]:
        # Read before the call, not in the handlers below: the metadata of a cancelled call may
        # be gone (see rpc.access).
        rest = any(key == REST_MARK for key, _ in context.invocation_metadata() or ())
        try:
            yield
        except ApiError as error:
            await _abort(context, error, rest_error(method, error) if rest else None)
        except grpc.aio.AbortError:
            raise
        except Exception:
            logger.exception("An internal error ended %s", method, extra={"rpc": method})
            message = "Internal server error. See the server's log for this request id."
            problem = InternalError(message)
            await _abort(context, problem, rest_error(method, problem) if rest else None)

    return translate


def status_of(error: ApiError) -> status_pb2.Status:
    """Return an error with its google.rpc details."""
    code = grpc.StatusCode[error.status].value[0]
    status = status_pb2.Status(code=code, message=error.message)
    for detail in _details(error):
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _details(error: ApiError) -> Iterator[Message]:
    yield error_details_pb2.ErrorInfo(reason=error.code.upper(), domain=DOMAIN)
    if error.violations:
        yield error_details_pb2.BadRequest(
            field_violations=[
                error_details_pb2.BadRequest.FieldViolation(
                    field=violation.field, description=violation.message
                )
                for violation in error.violations
            ]
        )
    if error.retry_after is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(int(error.retry_after * 1000))
        yield error_details_pb2.RetryInfo(retry_delay=delay)


async def _abort(
    context: Context, error: ApiError, rest_error: tuple[str, int | None] | None
) -> None:
    record = current_record()
    record.error = error
    metadata: list[tuple[str, str | bytes]] = [
        ("grpc-status-details-bin", status_of(error).SerializeToString()),
        ("x-request-id", request_id.get()),
        *record.rate_limits,
    ]
    if error.retry_after is not None:
        # HTTP's header takes whole seconds; 0 would mean at once.
        metadata.append(("retry-after", str(max(1, math.ceil(error.retry_after)))))
    if error.status == grpc.StatusCode.UNAUTHENTICATED.name:
        metadata.append(("www-authenticate", "Bearer"))
    if rest_error is not None:
        body, http_status = rest_error
        metadata.append(("x-ovchat-error", body))
        if http_status is not None:
            metadata.append(("x-ovchat-status", str(http_status)))
            record.http_status = http_status
    await context.abort(grpc.StatusCode[error.status], error.message, tuple(metadata))
