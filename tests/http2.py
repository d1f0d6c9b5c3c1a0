"""HTTP/2 and gRPC by hand, for clients that do as no library would."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4
# What a frame may hold unless a peer says more.
FRAME = 16_384
PATH = b"/ovchat.v1.ChatService/StreamChatCompletion"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2."""
    head = struct.pack(">I", len(payload))[1:] + bytes((kind, flags))
    return head + struct.pack(">I", stream) + payload


def field(name: bytes, value: bytes) -> bytes:
    """A header as HPACK writes it without tables."""
    return b"\x00" + _length(name) + name + _length(value) + value


def _length(text: bytes) -> bytes:
    """The length of a text as HPACK writes it: seven bits, and the rest in as many bytes."""
    rest = len(text) - 127
    if rest < 0:
        return bytes((len(text),))
    written = [127]
    while rest >= 128:
        written.append(rest % 128 | 128)
        rest //= 128
    return bytes((*written, rest))


def call(data: bytes, *fields: tuple[bytes, bytes], path: bytes = PATH) -> bytes:
    """The bytes of an RPC."""
    headers = (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path),
        (b":authority", b"x"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
        *fields,
    )
    block = b"".join(field(name, value) for name, value in headers)
    first, *others = [block[at : at + FRAME] for at in range(0, len(block), FRAME)]
    frames = [
        frame(HEADERS, 0 if others else END_HEADERS, 1, first),
        *(frame(CONTINUATION, 0, 1, part) for part in others[:-1]),
        *(frame(CONTINUATION, END_HEADERS, 1, part) for part in others[-1:]),
    ]
    return b"".join(frames) + frame(DATA, END_STREAM, 1, data)


def message(body: bytes, *, compressed: int = 0, length: int | None = None) -> bytes:
    """The prefix of gRPC, and what follows it."""
    return struct.pack(">BI", compressed, len(body) if length is None else length) + body


async def until(reader: asyncio.StreamReader, kind: int) -> None:
    """Until a frame of a kind has come; the connection may not end before."""
    head = b""
    while not head or head[3] != kind:
        head = await reader.readexactly(9)
        await reader.readexactly(int.from_bytes(head[:3]))
        assert head[3] != GOAWAY
