"""The record of the current request: what its log line, its metrics and its trace are made of."""

from __future__ import annotations

import contextlib
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from ovchat_server.domain.identity import NOBODY
from ovchat_server.engine.contract.times import RequestTimes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ovchat_server.domain.completion import FinishReason, Usage
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.domain.identity import Identity
    from ovchat_server.serving.recorded_content import RecordedContent

# OpenTelemetry's word.
UNKNOWN_RPC: Final = "_OTHER"


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the work on a request, in `time.monotonic` seconds."""

    name: str
    began: float
    ended: float


@dataclass(slots=True)
class RequestRecord:
    """The state of a request so far.

    Attributes:
        began: When it arrived, in `time.monotonic` seconds.
        ended: When it was over; 0 until then, and so the next.
        status: The name of its gRPC status, such as "OK"; "" until it is over.
        rpc: The RPC's full name, such as "ovchat.v1.ChatService/CreateChatCompletion"; UNKNOWN_RPC
            if there is none of the name that was called, which callers make up.
        request_id: Its x-request-id.
        trace_id: Its trace, in hexadecimal; "" if it is in none.
        trace_headers: What other servers are told that are asked for it, so that they take part in
            its trace.
        content: What was asked and answered; None unless its trace has it.
        http_method: The HTTP method of a REST request; "" of other calls, and so the next.
        path: The path as the client sent it, without its query.
        caller: Who makes it; NOBODY until they are known.
        rate_limits: Headers that tell them how much they may still use.
        operation: What is asked of the model, in OpenTelemetry's words: "chat", "text_completion",
            "embeddings", ...; "" if nothing is.
        requested_model: The id that was asked for, which need not exist; "" for the only model.
        streams: Whether the answer is streamed.
        params: How the answer is generated; None if nothing is.
        response_id: The id of the answer; "" if it has none.
        begun: Whether any part of the answer was sent.
        error: The error that ended it, before or after the answer began; None if there is none.
        http_status: The HTTP status of that error; None for the one of its gRPC status.
        model: The id of the model; "" if there is none, or it is not served.
        provider: The name of the provider whose model it is; "" for a model of our own.
        prompt_tokens: The number of tokens of all prompts.
        completion_tokens: The number of tokens of all choices.
        usage: All that was counted of a generated answer; None: nothing was.
        choices: The number of choices.
        finish_reasons: The finish reasons of the choices that have ended.
        stages: The parts of the work that were done in the server.
        times: What the engine did when.
    """

    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    status: str = ""
    rpc: str = ""
    request_id: str = ""
    trace_id: str = ""
    trace_headers: dict[str, str] = field(default_factory=dict)
    content: RecordedContent | None = None
    http_method: str = ""
    path: str = ""
    caller: Identity = NOBODY
    rate_limits: Sequence[tuple[str, str]] = ()
    operation: str = ""
    requested_model: str = ""
    streams: bool = False
    params: GenerationParams | None = None
    response_id: str = ""
    begun: bool = False
    error: ApiError | None = None
    http_status: int | None = None
    model: str = ""
    provider: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usage: Usage | None = None
    choices: int = 0
    finish_reasons: list[FinishReason] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    times: RequestTimes = field(default_factory=RequestTimes)

    def ask(self, model: str) -> None:
        """Note that a model is asked. One of its route that did not answer is forgotten."""
        self.model, self.provider = model, ""
        self.times.forget()

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Take down how long a part of the work takes, however it ends."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.stages.append(Stage(name, began, time.monotonic()))

    @property
    def seconds(self) -> float:
        """How long it took, once it is over."""
        return self.ended - self.began

    @property
    def first_token_seconds(self) -> float | None:
        """How long it took from its arrival to its first token; None if there was none."""
        first = self.times.first_output
        return None if first is None else first - self.began


_current: ContextVar[RequestRecord | None] = ContextVar("record", default=None)


class RequestObserver(Protocol):
    """Is told of every request; of probes only the end of those that fail."""

    def begin(self, record: RequestRecord, metadata: Mapping[str, str | bytes]) -> None:
        """Note that a request arrived, with these headers."""
        ...

    def end(self, record: RequestRecord) -> None:
        """Note that it is over."""
        ...


def begin_record(rpc: str = "") -> RequestRecord:
    """Return a new record, that of the current task, which serves one request."""
    record = RequestRecord(rpc=rpc)
    _current.set(record)
    return record


def current_record() -> RequestRecord:
    """Return the record of the current request; outside of one, a new one for nobody."""
    return _current.get() or RequestRecord()
