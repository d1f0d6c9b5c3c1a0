"""The record of the current request: what its line in the log is made of."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.completion import FinishReason
    from ovchat_server.domain.errors import ApiError


@dataclass(slots=True)
class RequestRecord:
    """The state of a request so far.

    Attributes:
        begun: Whether any part of the answer was sent.
        error: The error that ended it, before or after the answer began; None if there is none.
        http_status: The HTTP status of that error; None for the one of its gRPC status.
        model: The id of the model; "" if there is none, or it is not served.
        prompt_tokens: The number of tokens of all prompts.
        completion_tokens: The number of tokens of all choices.
        finish_reasons: The finish reasons of the choices that have ended.
    """

    begun: bool = False
    error: ApiError | None = None
    http_status: int | None = None
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reasons: list[FinishReason] = field(default_factory=list)


_current: ContextVar[RequestRecord | None] = ContextVar("record", default=None)


def begin_record() -> RequestRecord:
    """Return a new record, that of the current task, which serves one request."""
    record = RequestRecord()
    _current.set(record)
    return record


def current_record() -> RequestRecord:
    """Return the record of the current request; outside of one, a new one for nobody."""
    return _current.get() or RequestRecord()
