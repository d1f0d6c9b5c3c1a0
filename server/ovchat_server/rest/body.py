"""Bytes of HTTP bodies: JSON in, JSON and server-sent events out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from google.api import httpbody_pb2

from ovchat_server.api.errors import (
    MalformedBodyError,
    UnsupportedMediaTypeError,
    shortened,
)
from ovchat_server.api.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import grpc.aio

    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.api.limits import Limits

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
PIECE_BYTES = 1 << 20
# A header has room for a hint, not for a list of everything.
MAX_NAMED_PARAMETERS = 20
MAX_NAME_CHARACTERS = 40


def read_json_object(body: httpbody_pb2.HttpBody, limits: Limits = DEFAULT_LIMITS) -> JsonObject:
    """The object that a request's body holds.

    It may be deeper than `limits` allow: they are checked where fields are read. What cannot even
    be parsed is far beyond them.

    Raises:
        UnsupportedMediaTypeError: The body says that it is something else.
        MalformedBodyError: It is no JSON, or no object.
    """
    kind = body.content_type.partition(";")[0].strip().lower()
    if kind not in {"", JSON} and not kind.endswith("+json"):
        raise UnsupportedMediaTypeError(
            f"The body must be {JSON}, but its content-type is {shortened(body.content_type)!r}."
        )
    try:
        value = msgspec.json.decode(body.data)
    except msgspec.DecodeError as error:
        raise MalformedBodyError(f"The body is not valid JSON: {error}.") from error
    except UnicodeDecodeError as error:
        raise MalformedBodyError("The body is not valid JSON: it is not UTF-8.") from error
    except RecursionError as error:
        raise MalformedBodyError(
            "The body is nested too deep to be read; "
            f"a parameter may have {limits.max_json_depth} levels."
        ) from error
    if not isinstance(value, dict):
        raise MalformedBodyError("The body must be a JSON object.")
    return value


def json_body(value: JsonObject) -> httpbody_pb2.HttpBody:
    """A whole JSON answer."""
    return httpbody_pb2.HttpBody(content_type=JSON, data=msgspec.json.encode(value))


def json_pieces(value: JsonObject) -> Iterator[httpbody_pb2.HttpBody]:
    """A whole JSON answer of any length: Envoy refuses a message of 8 MiB and more.

    What takes long is done when this returns: the pieces are cut from it one by one.
    """
    data = msgspec.json.encode(value)
    return (
        httpbody_pb2.HttpBody(content_type=JSON, data=data[start : start + PIECE_BYTES])
        for start in range(0, len(data), PIECE_BYTES)
    )


def event(value: JsonObject, name: str = "") -> bytes:
    """Return a server-sent event; a nameless one has no `event:` line."""
    line = f"event: {name}\n".encode() if name else b""
    return line + b"data: " + msgspec.json.encode(value) + b"\n\n"


def event_stream(events: bytes) -> httpbody_pb2.HttpBody:
    """Return a part of a stream of server-sent events."""
    return httpbody_pb2.HttpBody(content_type=EVENT_STREAM, data=events)


def ascii_json(value: JsonObject) -> str:
    """JSON that fits into a header: all but printable ASCII escaped."""
    text = msgspec.json.encode(value).decode()
    # DEL is ASCII, but gRPC refuses to send it in a header.
    return "".join(char if " " <= char <= "~" else _escaped(char) for char in text)


async def name_ignored(names: Sequence[str], context: grpc.aio.ServicerContext[Any, Any]) -> None:
    """Send a header that names the parameters that were ignored, where there are any."""
    if names:
        await context.send_initial_metadata((("x-ignored-parameters", header_list(names)),))


def header_list(names: Sequence[str]) -> str:
    """Names a caller chose, fit for a header."""
    return ", ".join(
        ascii_json([name[:MAX_NAME_CHARACTERS]])[2:-2]  # type: ignore[arg-type]
        for name in names[:MAX_NAMED_PARAMETERS]
    )


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
