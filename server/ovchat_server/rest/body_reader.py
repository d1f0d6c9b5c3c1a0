"""Requests from the bodies that they come in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ovchat_server.rest.body import read_json_object

if TYPE_CHECKING:
    from google.api import httpbody_pb2

    from ovchat_server.api.limits import Limits
    from ovchat_server.rest.codec import RequestReader
    from ovchat_server.serving.codec_workers import CodecWorkers

Request = TypeVar("Request")


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads requests by the rules of this server.

    Attributes:
        strict: Unknown keys are refused instead of ignored.
        limits: How much a request may hold.
        workers: Where requests are read and answers encoded.
    """

    strict: bool
    limits: Limits
    workers: CodecWorkers

    async def read(self, read: RequestReader[Request], body: httpbody_pb2.HttpBody) -> Request:
        """Return what `read` makes of the object in a body.

        Raises:
            UnsupportedMediaTypeError: The body says that it is no JSON.
            MalformedBodyError: It is none, or no object.
            InvalidRequestError: See RequestReader.
        """

        def request() -> Request:
            fields = read_json_object(body, self.limits)
            return read(fields, strict=self.strict, limits=self.limits)

        return await self.workers.read(request, len(body.data))
