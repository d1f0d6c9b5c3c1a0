"""Reads requests from HTTP bodies."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ovchat_server.domain.errors import MalformedBodyError, UnsupportedMediaTypeError, shortened
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.rest.json_faults import cut_off, named_fault

if TYPE_CHECKING:
    from google.api import httpbody_pb2

    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.limits import Limits
    from ovchat_server.rest.codec import RequestReader
    from ovchat_server.serving.codec_threads import CodecThreads

Request = TypeVar("Request")

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads requests by this server's rules.

    Attributes:
        strict: Whether unknown keys are refused instead of ignored.
        limits: How much a request may contain.
        threads: The threads in which requests are read and answers encoded.
    """

    strict: bool
    limits: Limits
    threads: CodecThreads

    async def read(self, read: RequestReader[Request], body: httpbody_pb2.HttpBody) -> Request:
        """Return the request that `read` makes from the JSON object in a body.

        Raises:
            UnsupportedMediaTypeError: The body says that it is no JSON.
            MalformedBodyError: It is none, or no object.
            InvalidRequestError: See RequestReader.
        """

        def request() -> Request:
            fields = read_json_object(body, self.limits)
            return read(fields, strict=self.strict, limits=self.limits)

        return await self.threads.read(request, len(body.data))


def read_json_object(body: httpbody_pb2.HttpBody, limits: Limits = DEFAULT_LIMITS) -> JsonObject:
    """Return the JSON object in a request's body.

    It may be deeper than `limits` allow: they are checked where fields are read. What cannot even
    be parsed is far beyond them.

    Raises:
        UnsupportedMediaTypeError: The body says that it is something else.
        MalformedBodyError: It is no JSON, or no object. It names the field where it is one.
    """
    kind = body.content_type.partition(";")[0].strip().lower()
    if kind not in {"", JSON} and not kind.endswith("+json"):
        raise UnsupportedMediaTypeError(
            f"The body must be {JSON}, but its content-type is {shortened(body.content_type)!r}."
        )
    # Some editors and clients on Windows write a byte order mark, which is not JSON.
    data = body.data.removeprefix(codecs.BOM_UTF8)
    if not data.strip():
        raise MalformedBodyError("The body is empty; it must be a JSON object.")
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        # In this order: msgspec takes half a surrogate pair at the end for a body that is cut off.
        fault = named_fault(data.decode(errors="replace")) or cut_off(data, error)
        raise fault or MalformedBodyError(f"The body is not valid JSON: {error}.") from error
    except UnicodeDecodeError as error:
        raise MalformedBodyError("The body is not valid JSON: it is not UTF-8.") from error
    except RecursionError as error:
        raise MalformedBodyError(
            "The body is nested too deeply; "
            f"a parameter may have at most {limits.max_json_depth} levels."
        ) from error
    if not isinstance(value, dict):
        raise MalformedBodyError("The body must be a JSON object.")
    return value
