"""The Responses API as a codec: the encoder of answers, the encoder of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.blocks import blocks_of
from ovchat_server.domain.completion import FinishReason
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.rest.codec import RestError
from ovchat_server.rest.openai import objects as openai
from ovchat_server.rest.openai.codec import DONE
from ovchat_server.rest.response_body import PING, event
from ovchat_server.rest.responses.items import Status
from ovchat_server.rest.responses.objects import final_status, response, response_object
from ovchat_server.rest.responses.output import Output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat_server.domain.completion import Chunk, Completion, CompletionInfo, Usage
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.responses.request import ResponsesRequest
    from ovchat_server.rest.responses.items import Event


class ResponsesEncoder:
    """Encodes one answer; see AnswerEncoder. A stream begins with `begin`."""

    _info: CompletionInfo
    _output: Output

    def __init__(self, request: ResponsesRequest) -> None:
        """Make the encoder of the answer to a request."""
        self._request = request
        self._events = 0
        self._finish_reason = FinishReason.STOP
        self._usage: Usage | None = None
        self._ended: int | None = None

    def whole(self, completion: Completion) -> JsonObject:
        """Return the response."""
        return response_object(self._request, completion)

    def begin(self, info: CompletionInfo) -> bytes:
        """Return the events of a response without output."""
        self._info = info
        self._output = Output(self._request, info.id)
        begun: JsonObject = {"response": response(self._request, info, Status.IN_PROGRESS, [])}
        return self._written([("response.created", begun), ("response.in_progress", begun)])

    def keep_alive(self) -> bytes:
        """Return a comment: readers skip it."""
        return PING

    def chunk(self, chunk: Chunk) -> bytes:
        """Return the events of what is new in the output."""
        events: list[Event] = []
        for choice in chunk.choices:
            for block in blocks_of(choice):
                events += self._output.add(block)
            self._finish_reason = choice.finish_reason or self._finish_reason
        self._usage = chunk.usage or self._usage
        self._ended = chunk.ended
        return self._written(events)

    def end(self) -> bytes:
        """Return the events that end the last item and the response, and the last event."""
        status = final_status(self._finish_reason)
        events = self._output.end(status)
        whole = response(
            self._request,
            self._info,
            status,
            self._output.items,
            usage=self._usage,
            ended=self._ended,
        )
        return self._written([*events, (f"response.{status}", {"response": whole})]) + DONE

    def failure(self, error: ApiError) -> bytes:
        """Return the error, the response that failed with it, and the last event."""
        error.respell(_spelled)
        # Of a server's faults OpenAI's type of this object knows one code.
        code = error.type if error.type == "server_error" else error.code
        failed = response(
            self._request,
            self._info,
            Status.FAILED,
            self._output.items,
            error={"code": code, "message": error.message},
        )
        events: list[Event] = [
            ("error", _error_event(error)),
            ("response.failed", {"response": failed}),
        ]
        return self._written(events) + DONE

    def _written(self, events: Iterable[Event]) -> bytes:
        written = []
        for kind, fields in events:
            written.append(event({"type": kind, "sequence_number": self._events, **fields}, kind))
            self._events += 1
        return b"".join(written)


def responses_encoder(request: ResponsesRequest) -> ResponsesEncoder:
    """Return the encoder of the answer to a request."""
    return ResponsesEncoder(request)


def encode_error(error: ApiError) -> RestError:
    """Return OpenAI's error object; see ErrorEncoder."""
    error.respell(_spelled)
    return RestError(openai.error(error), error.http_status)


def _error_event(error: ApiError) -> JsonObject:
    """Return the error twice: beside the type, as OpenAI describes the event, and as an object.

    The object is what OpenAI sends, and only for its key do the SDKs raise an error.
    """
    return {
        "code": error.code,
        "message": error.message,
        "param": error.param,
        **openai.error(error),
    }


def _spelled(path: FieldPath) -> FieldPath:
    """Return the path of a field of a chat as it is in a request."""
    match path.steps:
        # Messages are read from items, several from one or one from several.
        case ("messages", *_):
            return FieldPath.of("input")
        case ("max_tokens", *inner):
            return FieldPath.of("max_output_tokens", *inner)
    return path
