"""Errors on the gRPC wire, and on the way to REST callers through Envoy."""

from __future__ import annotations

import contextlib
import logging
import math
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from ovchat_server.api.errors import ApiError, InternalError
from ovchat_server.telemetry.logs import request_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from google.protobuf.message import Message

    from ovchat_server.rpc.wrapping import Around

DOMAIN = "ovchat"
# Envoy sets it on what it transcoded, and removes it from what callers send.
REST_MARK = "x-envoy-original-path"

logger = logging.getLogger(__name__)


def error_translation(rest_body: Callable[[ApiError], str]) -> Around:
    """What turns exceptions into statuses.

    Args:
        rest_body: The body of an error on the REST wire, in ASCII. It travels as a header
            that Envoy's filter turns into the body.
    """

    @contextlib.asynccontextmanager
    async def translate(
        context: grpc.aio.ServicerContext[Any, Any], method: str
    ) -> AsyncIterator[None]:
        # Now, not in the handlers: what a context hands out after its call was cancelled may
        # be gone (see rpc.access).
        rest = any(key == REST_MARK for key, _ in context.invocation_metadata() or ())
        body = rest_body if rest else None
        try:
            yield
        except ApiError as error:
            await _abort(context, error, body)
        except grpc.aio.AbortError:
            raise
        except Exception:
            logger.exception("an RPC failed", extra={"method": method})
            message = "The server met an internal error. Its log has more, under the request id."
            await _abort(context, InternalError(message), body)

    return translate


def status_of(error: ApiError) -> status_pb2.Status:
    """An error with its google.rpc details."""
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
    context: grpc.aio.ServicerContext[Any, Any],
    error: ApiError,
    rest_body: Callable[[ApiError], str] | None,
) -> None:
    metadata: list[tuple[str, str | bytes]] = [
        ("grpc-status-details-bin", status_of(error).SerializeToString()),
        ("x-request-id", request_id.get()),
    ]
    if error.retry_after is not None:
        # HTTP knows whole seconds only; 0 would mean at once.
        metadata.append(("retry-after", str(max(1, math.ceil(error.retry_after)))))
    if error.status == grpc.StatusCode.UNAUTHENTICATED.name:
        metadata.append(("www-authenticate", "Bearer"))
    if rest_body is not None:
        metadata.append(("x-ovchat-error", rest_body(error)))
        if error.http_status is not None:
            metadata.append(("x-ovchat-status", str(error.http_status)))
    await context.abort(grpc.StatusCode[error.status], error.message, tuple(metadata))
