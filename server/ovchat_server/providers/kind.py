"""What a kind of provider is: how requests are written in its API, and answers read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.completion import ChunkChoice, Usage
    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.text import TextRequest


class BadAnswerError(Exception):
    """A provider's answer is not what its API says; the message says what is wrong."""


class ReportedError(Exception):
    """A provider reports an error in the midst of an answer."""

    def __init__(self, message: str) -> None:
        """Take the provider's message."""
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request in a provider's API.

    Attributes:
        path: Where it is posted to, below the provider's base URL: "/chat/completions".
        body: What is posted, as JSON.
        ignored: The names of parameters that are left out, because they cannot change the answer.
    """

    path: str
    body: JsonObject
    ignored: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class WireError:
    """An error that a provider answers with.

    Attributes:
        message: Its words; "" if it has none.
        param: The field at fault, as the domain names it; None if it names none.
        code: Its code; "" if it has none.
    """

    message: str = ""
    param: FieldPath | None = None
    code: str = ""


class AnswerReader(Protocol):
    """Reads one answer: either whole or event by event.

    A choice's first chunk has the role. Chunks of a choice end with one that has its finish reason.
    """

    @property
    def usage(self) -> Usage:
        """The tokens so far; 0 where the provider has not told yet."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the stream said that it has ended: nothing else will come."""
        ...

    @property
    def complete(self) -> bool:
        """Whether all choices have ended. Otherwise an answer that just stops was cut off."""
        ...

    def whole(self, body: bytes) -> Iterable[ChunkChoice]:
        """Read an answer that is not streamed.

        Raises:
            BadAnswerError: It is not such an answer.
            ReportedError: It is an error.
        """
        ...

    def event(self, data: bytes) -> Iterable[ChunkChoice]:
        """Read the data of a server-sent event.

        Raises:
            BadAnswerError: It is not an event of such an answer.
            ReportedError: It is an error.
        """
        ...


class ProviderKind(Protocol):
    """An API that providers speak.

    Attributes:
        models_path: Where its models are listed, below the base URL.
    """

    models_path: str

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers of every request; `key` is the API key, "" for none."""
        ...

    def request(self, request: ChatRequest | TextRequest, model: str) -> WireRequest:
        """Write a request.

        Args:
            request: The request.
            model: The id that the provider knows the model by.

        Raises:
            InvalidRequestError: The API cannot express it; every such parameter is named.
        """
        ...

    def reader(self, request: ChatRequest | TextRequest) -> AnswerReader:
        """Return what reads the answer to a request."""
        ...

    def error(self, body: bytes) -> WireError:
        """Read the body of an answer with an error status; it may be anything."""
        ...

    def model_ids(self, body: bytes) -> Sequence[str]:
        """Read the list of models.

        Raises:
            BadAnswerError: It is no such list.
        """
        ...
