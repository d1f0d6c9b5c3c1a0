"""Requests from the bodies that they come in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from ovchat_server.api.chat_request import read_chat_request
from ovchat_server.api.text_request import read_text_request
from ovchat_server.rest.body import read_json_object
from ovchat_server.rest.json_texts import with_parsed_texts

if TYPE_CHECKING:
    from google.api import httpbody_pb2

    from ovchat_server.api.chat import ChatRequest
    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.api.limits import Limits
    from ovchat_server.api.text import TextRequest
    from ovchat_server.rest.rules import RestRules
    from ovchat_server.serving.codec_workers import CodecWorkers

Request_co = TypeVar("Request_co", covariant=True)


class Reads(Protocol[Request_co]):
    """Makes a request of the fields of an object.

    Raises:
        InvalidRequestError: With every fault found.
    """

    def __call__(self, fields: JsonObject, *, strict: bool, limits: Limits) -> Request_co:
        """The request."""
        ...


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads requests by the rules of the REST door."""

    rules: RestRules
    workers: CodecWorkers

    async def request(self, reads: Reads[Request_co], body: httpbody_pb2.HttpBody) -> Request_co:
        """The request in a body.

        Raises:
            UnsupportedMediaTypeError: The body says that it is no JSON.
            MalformedBodyError: It is none, or no object.
            InvalidRequestError: See Reads.
        """

        def read() -> Request_co:
            fields = read_json_object(body, self.rules.limits)
            return reads(fields, strict=self.rules.strict, limits=self.rules.limits)

        return await self.workers.read(read, len(body.data))


def read_chat(fields: JsonObject, *, strict: bool, limits: Limits) -> ChatRequest:
    """See Reads: a chat."""
    return read_chat_request(with_parsed_texts(fields), strict=strict, limits=limits)


def read_text(fields: JsonObject, *, strict: bool, limits: Limits) -> TextRequest:
    """See Reads: a text completion."""
    return read_text_request(with_parsed_texts(fields), strict=strict, limits=limits)
