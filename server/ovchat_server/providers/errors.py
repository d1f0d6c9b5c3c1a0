"""What goes wrong at a provider, as errors of ours: with its name and its own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    UnavailableError,
    Violation,
)
from ovchat_server.domain.field_path import ErrorText, FieldPath

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.errors import ApiError
    from ovchat_server.providers.kind import WireError

REFUSED_KEY = (401, 403)
INVALID = (400, 413, 415, 422)
NOT_FOUND = 404
# All others: the provider failed. 529 is Anthropic's.
CLASSES: Mapping[int, type[ApiError]] = {
    408: DeadlineExceededError,
    429: OverloadedError,
    504: DeadlineExceededError,
    529: OverloadedError,
}
# Envoy's response flags, of which several may be set. Its documentation explains them.
FULL, NO_HOST, SILENT = {"UO"}, {"UH", "NC", "NR"}, {"UT", "SI", "DT"}
RETRY_SOON = 1.0
HIDDEN_KEY = "[API key]"


def without_key(text: str, key: str) -> str:
    """Return what a provider says, without the API key; "": it has none."""
    return text.replace(key, HIDDEN_KEY) if key else text


def of_status(
    provider: str, status: int, error: WireError, retry_after: float | None, name: str = ""
) -> ApiError:
    """Return the error for an answer with an error status.

    Args:
        provider: The provider's name.
        status: The HTTP status.
        error: What its body says.
        retry_after: Seconds after which it says that trying again makes sense.
        name: What the provider calls the status, if not by its number.
    """
    name = name or str(status)
    said = f"The provider {provider!r} answered {name}: {error.message or 'no reason'}"
    if status in REFUSED_KEY:
        # Its words would tell the caller about the key, which is the operator's.
        return UnavailableError(
            f"The provider {provider!r} refused this server's API key (status {name}): that is "
            "for the operator of this server to mend."
        )
    if status in INVALID:
        violations = []
        if error.param:
            violations.append(Violation(error.param, ErrorText.of(said)))
        invalid = InvalidRequestError(said, violations=violations)
        invalid.code = error.code or invalid.code
        return invalid
    if status == NOT_FOUND:
        text = ErrorText.of(said)
        code = ModelNotFoundError.code
        return ModelNotFoundError(said, violations=[Violation(FieldPath.of("model"), text, code)])
    error_class = CLASSES.get(status, ProviderError)
    if error_class is OverloadedError:
        retry_after = retry_after or RETRY_SOON
    return error_class(said, retry_after=retry_after)


def of_egress(provider: str, flags: str, reason: str) -> ApiError:
    """Return the error for an answer of Envoy's own, where the provider gave none.

    Args:
        provider: The provider's name.
        flags: Envoy's response flags, separated by commas.
        reason: What Envoy says of it; for the operator's eyes as well as the caller's.
    """
    found = set(flags.split(","))
    if found & FULL:
        return OverloadedError(
            f"The provider {provider!r} has as many requests as it may (max_requests).",
            retry_after=RETRY_SOON,
        )
    if found & SILENT:
        return DeadlineExceededError(f"The provider {provider!r} did not answer in time.")
    if found & NO_HOST:
        return of_silence(provider)
    return UnavailableError(
        f"The provider {provider!r} cannot be reached: {reason.replace('_', ' ') or flags}.",
        retry_after=RETRY_SOON,
    )


def of_silence(provider: str) -> UnavailableError:
    """Return the error where nobody answers."""
    return UnavailableError(
        f"The provider {provider!r} cannot be reached now.", retry_after=RETRY_SOON
    )


def of_report(provider: str, message: str) -> ProviderError:
    """Return the error for one that a provider reports in the midst of an answer."""
    return ProviderError(f"The provider {provider!r} ended its answer with an error: {message}")


def of_nonsense(provider: str, reason: str) -> ProviderError:
    """Return the error for an answer that is not what its API says."""
    return ProviderError(f"The answer of the provider {provider!r} cannot be read: {reason}.")


def of_break(provider: str) -> ProviderError:
    """Return the error for an answer that was cut off."""
    return ProviderError(f"The provider {provider!r} broke off its answer.")


def of_stopping() -> UnavailableError:
    """Return the error for an answer that this server, which stops, does not wait for."""
    return UnavailableError("The server is stopping. Try again shortly.", retry_after=RETRY_SOON)
