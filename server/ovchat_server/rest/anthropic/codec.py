"""The Messages API as a codec: the encoder of answers, the encoder of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.anthropic.spelling import spelled
from ovchat_server.rest.anthropic import objects
from ovchat_server.rest.anthropic.events import PING, MessageEvents
from ovchat_server.rest.codec import RestError
from ovchat_server.rest.response_body import typed_events

if TYPE_CHECKING:
    from ovchat_server.domain.anthropic.request import MessagesRequest
    from ovchat_server.domain.completion import Chunk, Completion, CompletionInfo
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.json_value import JsonObject


class MessagesEncoder:
    """Encodes one answer; see AnswerEncoder. A stream begins with `begin`."""

    def __init__(self, request: MessagesRequest) -> None:
        """Make the encoder of the answer to a request."""
        self._request = request
        self._events = MessageEvents(request)

    def whole(self, completion: Completion) -> JsonObject:
        """Return the message."""
        return objects.message(self._request, completion)

    def begin(self, info: CompletionInfo) -> bytes:
        """Return the event of a message without content."""
        return typed_events(self._events.begin(info))

    def keep_alive(self) -> bytes:
        """Return Anthropic's own event for it."""
        return typed_events([PING])

    def chunk(self, chunk: Chunk) -> bytes:
        """Return the events of what is new in the content."""
        return typed_events(self._events.chunk(chunk))

    def end(self) -> bytes:
        """Return the events that end the message."""
        return typed_events(self._events.end())

    def failure(self, error: ApiError) -> bytes:
        """Return the error as an event, the last one."""
        error.respell(spelled)
        return typed_events([objects.error(error)])


def encode_error(error: ApiError) -> RestError:
    """Return Anthropic's error object; see ErrorEncoder."""
    error.respell(spelled)
    return RestError(objects.error(error), objects.http_status(error))
