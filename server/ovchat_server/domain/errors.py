"""The errors a caller can meet, each with its place on both wires.

One class a kind. `status` is the canonical gRPC code; Envoy maps it to HTTP's, and where
that is not the status HTTP callers expect, `http_status` says so. `type` and `code` are
OpenAI's; the code in upper case is the reason of google.rpc.ErrorInfo.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from ovchat_server.domain.field_path import ErrorText, FieldPath, field_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.field_path import Complaint, Field, Spelling

# Bounded because all violations must fit into the 8 KiB of trailers that gRPC clients accept, twice
# and with every non-ASCII byte escaped.
MAX_REPORTED_VIOLATIONS = 10
MAX_REPORTED_CHARACTERS = 600
MAX_ECHOED_CHARACTERS = 50
WHERE_RESPONSES_GO = (
    "it may have expired, belong to another key, been created with store false, or be on another "
    "server"
)


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a request.

    Attributes:
        path: The field at fault.
        text: What is wrong with it, as a sentence that names the field.
        code: OpenAI's word for the kind of fault.
    """

    path: FieldPath
    text: ErrorText
    code: str = "invalid_value"

    @classmethod
    def of(cls, field: Field, complaint: Complaint, code: str = "invalid_value") -> Violation:
        """Return the violation by a field; `complaint` completes "<field> ..."."""
        path = field_path(field)
        return cls(path, ErrorText.of(path, " ", complaint), code)

    @property
    def field(self) -> str:
        """The path as text."""
        return str(self.path)

    @property
    def message(self) -> str:
        """The sentence as text."""
        return str(self.text)


class ApiError(Exception):
    """An answer other than a completion. Only subclasses are raised."""

    status: ClassVar[str] = "INTERNAL"
    http_status: ClassVar[int | None] = None
    type: ClassVar[str] = "server_error"
    code: str = "internal_error"

    def __init__(
        self,
        message: Complaint,
        *,
        violations: Sequence[Violation] = (),
        retry_after: float | None = None,
    ) -> None:
        """Make the error.

        Args:
            message: For the caller, a sentence to act on. No file paths, no engine text.
            violations: The fields at fault, the first one leading.
            retry_after: Seconds after which trying again makes sense.
        """
        super().__init__(str(message))
        self.text = ErrorText.of(message)
        self.violations = tuple(violations)
        self.retry_after = retry_after

    @property
    def message(self) -> str:
        """The sentence for the caller."""
        return str(self.text)

    @property
    def param(self) -> str | None:
        """The field at fault: OpenAI's `param`."""
        return self.violations[0].field if self.violations else None

    def respell(self, spelling: Spelling, field_spelling: Spelling | None = None) -> None:
        """Name fields as the API does that the caller speaks.

        Args:
            spelling: Maps the path of a field of the domain to the path of the API's.
            field_spelling: The same for the fields at fault themselves, where it differs from
                what messages call them.
        """
        self.text = self.text.spelled(spelling)
        self.violations = tuple(
            replace(
                violation,
                path=(field_spelling or spelling)(violation.path),
                text=violation.text.spelled(spelling),
            )
            for violation in self.violations
        )


class InvalidRequestError(ApiError):
    """The request cannot be served as it stands, now or later."""

    status = "INVALID_ARGUMENT"
    type = "invalid_request_error"
    code = "invalid_value"

    @classmethod
    def of(cls, violations: Sequence[Violation]) -> Self:
        """Return the error for everything wrong with one request; at least one violation."""
        reported: list[Violation] = []
        for violation in violations[:MAX_REPORTED_VIOLATIONS]:
            if sum(len(item.message) for item in reported) > MAX_REPORTED_CHARACTERS:
                break
            reported.append(violation)
        text = reported[0].text
        for violation in reported[1:]:
            text = ErrorText.of(text, " ", violation.text)
        if len(violations) > len(reported):
            text = ErrorText.of(text, f" {len(violations) - len(reported)} more fields are wrong.")
        error = cls(text, violations=reported)
        error.code = reported[0].code
        return error

    @classmethod
    def about(cls, field: Field, complaint: Complaint, code: str = "invalid_value") -> Self:
        """Return the error for one wrong field; `complaint` completes "<field> ..."."""
        return cls.of([Violation.of(field, complaint, code)])


class ContextLengthExceededError(InvalidRequestError):
    """Prompt and answer do not fit the model's context.

    LangChain and LiteLLM know it by words of its message, to try again with less. Claude Code
    reads by how much a prompt is too long, to make the conversation shorter.
    """

    code = "context_length_exceeded"

    @classmethod
    def of_prompt(cls, field: Field, tokens: int, context_length: int) -> Self:
        """Return the error for a prompt, given as `field`, of at least `tokens` tokens."""
        return cls.about(
            field,
            f"leaves no room for an answer, the prompt is too long: {tokens} tokens > "
            f"{context_length} maximum. {cls._limit(context_length)}",
            cls.code,
        )

    @classmethod
    def of_answer(cls, field: Field, asked: int, used: int, context_length: int) -> Self:
        """Return the error for a prompt that leaves no room for the answer `field` asks for."""
        return cls.about(
            field,
            f"asks for {asked} tokens besides the {used} of the prompt. "
            f"{cls._limit(context_length)}",
            cls.code,
        )

    @classmethod
    def of_search(cls, field: Field, width: int, fitting: int, context_length: int) -> Self:
        """Return the error for a search of `width` beams where `fitting` would have room."""
        return cls.about(
            field,
            f"must be at most {fitting} for this request: of {width} beams each has room "
            f"for {max(context_length, 0)} tokens, its maximum context length, for prompt and "
            "answer together.",
            cls.code,
        )

    @staticmethod
    def _limit(context_length: int) -> str:
        return (
            f"This model's maximum context length is {context_length} tokens, "
            "for prompt and answer together."
        )


class MalformedBodyError(InvalidRequestError):
    """The body of a REST request is not a JSON object."""

    code = "invalid_json"


class MalformedMessageError(InvalidRequestError):
    """The bytes of a gRPC request are not the message they should be."""

    code = "malformed_message"


class UnsupportedMediaTypeError(InvalidRequestError):
    """The body of a REST request says that it is not JSON."""

    http_status = 415
    code = "unsupported_media_type"


class AuthenticationError(ApiError):
    """The caller has no valid API key."""

    status = "UNAUTHENTICATED"
    type = "invalid_request_error"
    code = "invalid_api_key"


class ModelNotFoundError(ApiError):
    """No model of that id is served here."""

    status = "NOT_FOUND"
    type = "invalid_request_error"
    code = "model_not_found"


class ResponseNotFoundError(ApiError):
    """The caller has no response of that id here."""

    status = "NOT_FOUND"
    type = "invalid_request_error"
    code = "response_not_found"

    @classmethod
    def of(cls, response_id: str) -> Self:
        """Return the error for a response that is asked for."""
        return cls(f"The response {shortened(response_id)!r} was not found: {WHERE_RESPONSES_GO}.")

    @classmethod
    def of_previous(cls, response_id: str, *, enabled: bool) -> Self:
        """Return the error for one to continue; `enabled` says whether the server keeps any."""
        why = WHERE_RESPONSES_GO if enabled else "this server keeps no responses"
        complaint = (
            f"{shortened(response_id)!r} was not found: {why}. "
            "Send the whole conversation as input."
        )
        # OpenAI's code, by which clients know to do so.
        violation = Violation.of("previous_response_id", complaint, "previous_response_not_found")
        error = cls(violation.text, violations=[violation])
        error.code = violation.code
        return error


class OverloadedError(ApiError):
    """More is asked of a model than it can do: the caller should come back later."""

    status = "RESOURCE_EXHAUSTED"
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class UnavailableError(ApiError):
    """The server cannot answer now: a model is loading, an engine died, the server stops."""

    status = "UNAVAILABLE"
    code = "service_unavailable"


class ProviderError(ApiError):
    """A provider of models failed: it answered with an error of its own, or with nonsense."""

    status = "UNAVAILABLE"
    http_status = 502
    code = "provider_error"


class DeadlineExceededError(ApiError):
    """The answer was not done in the time that the server gives a request."""

    status = "DEADLINE_EXCEEDED"
    code = "timeout"


class InternalError(ApiError):
    """A fault of ours."""


def shortened(text: str) -> str:
    """Return what a caller sent, short enough to echo in a message."""
    if len(text) <= MAX_ECHOED_CHARACTERS:
        return text
    return text[:MAX_ECHOED_CHARACTERS] + "..."
