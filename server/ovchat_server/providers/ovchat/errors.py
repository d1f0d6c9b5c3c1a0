"""What goes wrong in calls of another ovchat, as errors of ours."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc.aio
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from ovchat_server.domain.errors import InvalidRequestError, Violation
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.providers import errors
from ovchat_server.providers.egress import FAILURE
from ovchat_server.providers.error_body import cut
from ovchat_server.providers.kind import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.errors import ApiError

DETAILS = "grpc-status-details-bin"
# What HTTP calls the statuses. Of all others, too, the provider failed.
FAILED = 500
STATUSES: Mapping[grpc.StatusCode, int] = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


def of_call(provider: str, error: grpc.aio.AioRpcError, key: str, *, begun: bool) -> ApiError:
    """Return the error for a call that failed.

    Args:
        provider: The provider's name.
        error: What the call ended with.
        key: The API key, which is not part of errors; "": there is none.
        begun: Whether the answer had begun.
    """
    metadata = {**dict(error.initial_metadata()), **dict(error.trailing_metadata())}
    message = cut(errors.without_key(error.details() or "", key))
    told = _Details.of(metadata.get(DETAILS), key)
    if begun:
        # Whoever cuts an answer off has no details to tell.
        return errors.of_report(provider, message) if told else errors.of_break(provider)
    if (flags := metadata.get(FAILURE)) is not None:
        return errors.of_egress(provider, str(flags), message)
    code = error.code()
    if told is None and code is grpc.StatusCode.UNAVAILABLE:
        return errors.of_silence(provider)
    told = told or _Details()
    if code is grpc.StatusCode.INVALID_ARGUMENT and told.violations:
        return _invalid(f"The provider {provider!r} answered {code.name}: ", told)
    said = WireError(message, code=told.code)
    status = STATUSES.get(code, FAILED)
    return errors.of_status(provider, status, said, told.retry_after, code.name)


def _invalid(beginning: str, told: _Details) -> InvalidRequestError:
    # As many as fit.
    reported = InvalidRequestError.of(told.violations)
    text = ErrorText.of(beginning, reported.text)
    error = InvalidRequestError(text, violations=reported.violations)
    error.code = told.code or error.code
    return error


@dataclass(slots=True)
class _Details:
    """What an error tells besides its message (google.rpc).

    Attributes:
        code: OpenAI's word for the kind of fault; "" if it tells none.
        violations: The fields at fault.
        retry_after: Seconds after which it says that trying again makes sense.
    """

    code: str = ""
    violations: list[Violation] = field(default_factory=list)
    retry_after: float | None = None

    @classmethod
    def of(cls, packed: str | bytes | None, key: str) -> _Details | None:
        """Read what stands in the metadata of an error; None if that is nothing."""
        if not isinstance(packed, bytes):
            return None
        found = cls()
        info, faults = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        retry = error_details_pb2.RetryInfo()
        with contextlib.suppress(DecodeError):
            for detail in status_pb2.Status.FromString(packed).details:
                for kind in (info, faults, retry):
                    detail.Unpack(kind)
        found.code = cut(info.reason.lower())
        if retry.HasField("retry_delay"):
            found.retry_after = max(retry.retry_delay.ToMilliseconds() / 1000, 0)
        found.violations = [
            _violation(fault.field, errors.without_key(fault.description, key), found.code)
            for fault in faults.field_violations
        ]
        return found


def _violation(name: str, description: str, code: str) -> Violation:
    path = _path(cut(name))
    before, found, after = cut(description).partition(name)
    text = ErrorText.of(before, path, after) if found else ErrorText.of(description)
    return Violation(path, text, code or "invalid_value")


def _path(text: str) -> FieldPath:
    """Return a path as the domain has it, in which tokens are a list of lists (OpenAI)."""
    path = FieldPath.read(text)
    match path.steps:
        case ("prompt", int(prompt), "token_ids", "values", *rest):
            return FieldPath.of("prompt", prompt, *rest)
        case ("prompt", int(prompt), "text" | "token_ids"):
            return FieldPath.of("prompt", prompt)
    return path
