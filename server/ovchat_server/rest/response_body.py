"""JSON and server-sent events as HTTP bodies, and JSON in headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from google.api import httpbody_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import grpc.aio

    from ovchat_server.api.json_value import JsonObject

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
# A comment: readers skip it.
PING = b": ping\n\n"
PIECE_BYTES = 1 << 20
# A header has room for a hint, not for a list of everything.
MAX_NAMED_PARAMETERS = 10
MAX_NAME_CHARACTERS = 100


def json_body(value: JsonObject) -> httpbody_pb2.HttpBody:
    """Return a whole JSON answer."""
    return httpbody_pb2.HttpBody(content_type=JSON, data=msgspec.json.encode(value))


def json_pieces(value: JsonObject) -> Iterator[httpbody_pb2.HttpBody]:
    """Cut a JSON answer of any length into messages: Envoy refuses one of 8 MiB and more.

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
    """Return JSON that fits into a header: all but printable ASCII escaped."""
    text = msgspec.json.encode(value).decode()
    # DEL is ASCII, but gRPC refuses to send it in a header.
    return "".join(char if " " <= char <= "~" else _escaped(char) for char in text)


async def name_ignored(names: Sequence[str], context: grpc.aio.ServicerContext[Any, Any]) -> None:
    """Send a header that names the parameters that were ignored, where there are any."""
    if names:
        await context.send_initial_metadata((("x-ignored-parameters", header_list(names)),))


def header_list(names: Sequence[str]) -> str:
    """List names that a caller chose, fit for a header."""
    return ", ".join(
        ascii_json([name[:MAX_NAME_CHARACTERS]])[2:-2]  # type: ignore[arg-type]
        for name in names[:MAX_NAMED_PARAMETERS]
    )


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
