"""JSON and server-sent events as HTTP bodies, and hints in headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from google.api import httpbody_pb2

from ovchat_server.header_text import IGNORED, UNENFORCED, name_list, path_list
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import grpc.aio

    from ovchat_server.domain.field_path import SchemaPath
    from ovchat_server.domain.json_value import JsonObject

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
# A comment: readers skip it.
PING = b": ping\n\n"
PIECE_BYTES = 1 << 20


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


def typed_events(values: Iterable[JsonObject]) -> bytes:
    """Return server-sent events that are named as their types are."""
    return b"".join(event(value, str(value["type"])) for value in values)


def event_stream(events: bytes) -> httpbody_pb2.HttpBody:
    """Return a part of a stream of server-sent events."""
    return httpbody_pb2.HttpBody(content_type=EVENT_STREAM, data=events)


async def send_hints(
    ignored: Sequence[str],
    unenforced: Sequence[SchemaPath],
    context: grpc.aio.ServicerContext[Any, Any],
) -> None:
    """Send headers about ignored parameters, schemas that are not enforced, and rate limits."""
    headers = [*current_record().rate_limits]
    if ignored:
        headers.append((IGNORED, name_list(ignored)))
    if unenforced:
        headers.append((UNENFORCED, path_list(unenforced)))
    if headers:
        await context.send_initial_metadata(tuple(headers))
