"""What a public API consists of for the REST door: the parts that each API brings of its own.

A request is read into the domain, answered by `serving`, and its answer encoded; an error has a
shape of its own in every API. What is the same for all of them is in `rest.apis`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from ovchat_server.domain.completion import Chunk, Completion, CompletionInfo
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.limits import Limits

Request_co = TypeVar("Request_co", covariant=True)


class RequestReader(Protocol[Request_co]):
    """Reads a request of the domain from the fields of a JSON object."""

    def __call__(self, fields: JsonObject, *, strict: bool, limits: Limits) -> Request_co:
        """Return the request.

        Args:
            fields: The object, keys in the caller's order.
            strict: Refuse unknown keys instead of ignoring them.
            limits: How much the request may hold.

        Raises:
            InvalidRequestError: With every fault found.
        """
        ...


class AnswerEncoder(Protocol):
    """Encodes one answer, whole or as server-sent events.

    There is an encoder for each answer, so it may keep state from chunk to chunk: numbers of
    events, items that are open. Its calls never overlap, but come from several threads.
    """

    def whole(self, completion: Completion) -> JsonObject:
        """Return the body of a whole answer."""
        ...

    def begin(self, info: CompletionInfo) -> bytes:
        """Return the events that open a stream, once the engine works on it: none, or some."""
        ...

    def keep_alive(self) -> bytes:
        """Return what is sent while there is nothing to send, such as a comment."""
        ...

    def chunk(self, chunk: Chunk) -> bytes:
        """Return the events of a chunk: none, one, or several."""
        ...

    def end(self) -> bytes:
        """Return the events that close a complete stream."""
        ...

    def failure(self, error: ApiError) -> bytes:
        """Return the events that close a stream that has begun and cannot go on."""
        ...


@dataclass(frozen=True, slots=True)
class RestError:
    """An error before anything of an answer was sent.

    Attributes:
        body: The HTTP body.
        http_status: The HTTP status, unless Envoy's for the gRPC status is right.
    """

    body: JsonObject
    http_status: int | None = None


# May respell the error's paths as its API has them (ApiError.respell): it is encoded once.
ErrorEncoder: TypeAlias = Callable[["ApiError"], RestError]
