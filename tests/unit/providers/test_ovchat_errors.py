"""Errors of another ovchat: ours, with its words, and fields as the domain has them."""

from __future__ import annotations

import grpc.aio
import pytest

from ovchat_server.domain.errors import (
    ApiError,
    AuthenticationError,
    ContextLengthExceededError,
    DeadlineExceededError,
    InternalError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    UnavailableError,
    Violation,
)
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.providers.egress import FAILURE
from ovchat_server.providers.ovchat.errors import DETAILS, of_call
from ovchat_server.rpc.errors import status_of

KEY = "sk-1"
TOKEN = FieldPath.of("prompt", 0, "token_ids", "values", 1)
TEXT = FieldPath.of("prompt", 2, "text")
WRONG = [Violation.of(TOKEN, "is no token."), Violation.of(TEXT, "is too long.", "too_long")]


def of_error(error: ApiError, *, begun: bool = False) -> ApiError:
    """What becomes of an error that another ovchat sends."""
    metadata = grpc.aio.Metadata((DETAILS, status_of(error).SerializeToString()))
    return of_call("p", _failed(error.status, error.message, metadata), KEY, begun=begun)


def _failed(
    status: str, message: str, metadata: grpc.aio.Metadata | None = None
) -> grpc.aio.AioRpcError:
    empty = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode[status], empty, metadata or empty, message)


@pytest.mark.parametrize(
    ("error", "expected", "code"),
    [
        (InvalidRequestError.about("n", "is wrong."), InvalidRequestError, "invalid_value"),
        (
            ContextLengthExceededError.of_prompt("messages", 9, 8),
            InvalidRequestError,
            "context_length_exceeded",
        ),
        (ModelNotFoundError("no such model"), ModelNotFoundError, "model_not_found"),
        (OverloadedError("full", retry_after=7), OverloadedError, "rate_limit_exceeded"),
        (UnavailableError("it loads", retry_after=7), ProviderError, "provider_error"),
        (DeadlineExceededError("too long"), DeadlineExceededError, "timeout"),
        (InternalError("it broke"), ProviderError, "provider_error"),
    ],
)
def test_an_error_is_ours_with_the_words_of_the_other(
    error: ApiError, expected: type[ApiError], code: str
) -> None:
    found = of_error(error)

    assert (type(found), found.code) == (expected, code)
    assert found.message == f"The provider 'p' answered {error.status}: {error.message}"
    assert found.retry_after == error.retry_after


def test_fields_are_named_as_the_domain_does() -> None:
    found = of_error(InvalidRequestError.of(WRONG))

    assert [(item.field, item.message) for item in found.violations] == [
        ("prompt[0][1]", "prompt[0][1] is no token."),
        ("prompt[2]", "prompt[2] is too long."),
    ]
    assert found.message == (
        "The provider 'p' answered INVALID_ARGUMENT: "
        "prompt[0][1] is no token. prompt[2] is too long."
    )


def test_a_refused_key_is_for_the_operator() -> None:
    found = of_error(AuthenticationError(f"no such key: {KEY}"))

    assert isinstance(found, UnavailableError)
    assert "refused this server's API key (status UNAUTHENTICATED)" in found.message


@pytest.mark.parametrize(
    "error",
    [OverloadedError(f"of {KEY}"), InvalidRequestError.about("n", f"is not {KEY}.")],
)
def test_the_key_is_never_told(error: ApiError) -> None:
    found = of_error(error)

    assert "[API key]" in found.message
    assert KEY not in found.message + "".join(item.message for item in found.violations)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ((FAILURE, "UO"), "as many requests as it may"),
        ((FAILURE, "SI"), "did not answer in time"),
        ((FAILURE, "UF"), "cannot be reached: refused"),
        # Envoy itself is away.
        (("a", "b"), "cannot be reached now"),
        ((DETAILS, b"\xff"), "answered UNAVAILABLE: refused"),
    ],
)
def test_who_is_not_reached_is_told_apart(metadata: tuple[str, str | bytes], message: str) -> None:
    failed = _failed("UNAVAILABLE", "refused", grpc.aio.Metadata(metadata))
    assert message in of_call("p", failed, "", begun=False).message


def test_an_error_in_the_midst_of_an_answer_is_told_from_a_broken_connection() -> None:
    told = of_error(UnavailableError("The engine died."), begun=True)
    broken = of_call("p", _failed("INTERNAL", "RST_STREAM"), "", begun=True)

    assert told.message == "The provider 'p' ended its answer with an error: The engine died."
    assert broken.message == "The provider 'p' broke off its answer."
