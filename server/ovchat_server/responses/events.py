"""The events of a streamed response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.blocks import blocks_of
from ovchat_server.domain.completion import FinishReason
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.responses.items import Status
from ovchat_server.responses.objects import final_status, response
from ovchat_server.responses.output import Output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat_server.domain.completion import Chunk, CompletionInfo, Usage
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.responses.request import ResponsesRequest
    from ovchat_server.responses.items import Event


class ResponseEvents:
    """Makes the events of one response, in OpenAI's order. A stream begins with `begin`."""

    _info: CompletionInfo
    _output: Output

    def __init__(self, request: ResponsesRequest) -> None:
        """Make those of the answer to a request."""
        self._request = request
        self._events = 0
        self._finish_reason = FinishReason.STOP
        self._usage: Usage | None = None
        self._ended: int | None = None

    def begin(self, info: CompletionInfo) -> list[JsonObject]:
        """Return the events of a response without output."""
        self._info = info
        self._output = Output(self._request, info.id)
        begun: JsonObject = {"response": response(self._request, info, Status.IN_PROGRESS, [])}
        return self._numbered([("response.created", begun), ("response.in_progress", begun)])

    def chunk(self, chunk: Chunk) -> list[JsonObject]:
        """Return the events of what is new in the output."""
        events: list[Event] = []
        for choice in chunk.choices:
            for block in blocks_of(choice):
                events += self._output.add(block)
            self._finish_reason = choice.finish_reason or self._finish_reason
        self._usage = chunk.usage or self._usage
        self._ended = chunk.ended
        return self._numbered(events)

    def end(self) -> list[JsonObject]:
        """Return the events that end the last item and the response."""
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
        return self._numbered([*events, (f"response.{status}", {"response": whole})])

    def failure(self, error: ApiError) -> list[JsonObject]:
        """Return the error, and the response that failed with it.

        The error comes twice, beside the type, as OpenAI describes the event, and as an object:
        that is what OpenAI sends, and only for its key do the SDKs raise an error.
        """
        error.respell(spelled)
        shown: JsonObject = {"code": error.code, "message": error.message, "param": error.param}
        # Of a server's faults OpenAI's type of this object knows one code.
        code = error.type if error.type == "server_error" else error.code
        failed = response(
            self._request,
            self._info,
            Status.FAILED,
            self._output.items,
            error={"code": code, "message": error.message},
        )
        return self._numbered(
            [
                ("error", {**shown, "error": {**shown, "type": error.type}}),
                ("response.failed", {"response": failed}),
            ]
        )

    def _numbered(self, events: Iterable[Event]) -> list[JsonObject]:
        numbered: list[JsonObject] = []
        for kind, fields in events:
            numbered.append({"type": kind, "sequence_number": self._events, **fields})
            self._events += 1
        return numbered


def spelled(path: FieldPath) -> FieldPath:
    """Return the path of a field of a chat as it is in a request of this API."""
    match path.steps:
        # Messages are read from items, several from one or one from several.
        case ("messages", *_):
            return FieldPath.of("input")
        case ("max_tokens", *inner):
            return FieldPath.of("max_output_tokens", *inner)
    return path
