"""The Responses API as a codec: the encoder of answers, the encoder of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.responses.events import ResponseEvents, spelled
from ovchat_server.responses.objects import response_object
from ovchat_server.rest.codec import RestError
from ovchat_server.rest.openai import objects as openai
from ovchat_server.rest.openai.codec import DONE
from ovchat_server.rest.response_body import PING, typed_events

if TYPE_CHECKING:
    from ovchat_server.domain.completion import Chunk, Completion, CompletionInfo
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.responses.request import ResponsesRequest


class ResponsesEncoder:
    """Encodes one answer; see AnswerEncoder. A stream begins with `begin`."""

    def __init__(self, request: ResponsesRequest) -> None:
        """Make the encoder of the answer to a request."""
        self._request = request
        self._events = ResponseEvents(request)

    def whole(self, completion: Completion) -> JsonObject:
        """Return the response."""
        return response_object(self._request, completion)

    def begin(self, info: CompletionInfo) -> bytes:
        """Return the events of a response without output."""
        return typed_events(self._events.begin(info))

    def keep_alive(self) -> bytes:
        """Return a comment: readers skip it."""
        return PING

    def chunk(self, chunk: Chunk) -> bytes:
        """Return the events of what is new in the output."""
        return typed_events(self._events.chunk(chunk))

    def end(self) -> bytes:
        """Return the events that end the response, and Open Responses' last event."""
        return typed_events(self._events.end()) + DONE

    def failure(self, error: ApiError) -> bytes:
        """Return the error, the response that failed with it, and the last event."""
        return typed_events(self._events.failure(error)) + DONE


def encode_error(error: ApiError) -> RestError:
    """Return OpenAI's error object; see ErrorEncoder."""
    error.respell(spelled)
    return RestError(openai.error(error), error.http_status)
