"""Bytes that are no HTTP, and frames that are no gRPC: the ports bear them."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.fuzz.bodies import cut, flipped, spliced
from tests.grpc.requests import successor
from tests.http2 import (
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    PUSH,
    RST,
    SETTINGS,
    WINDOW,
    call,
    frame,
    message,
)

if TYPE_CHECKING:
    from tests.fuzz.conftest import Target

pytestmark = pytest.mark.slow

CHAT = b'{"model":"successor","messages":[{"role":"user","content":"abc"}],"max_tokens":3}'
# Enough for what a server says at once, and to see that it goes on.
PATIENCE = 0.1
BODY = successor("abc", 3).SerializeToString()
SETTINGS_FRAME = frame(SETTINGS, 0, 0, b"")
WHOLE = PREFACE + SETTINGS_FRAME + call(message(BODY))
ODD_FRAMES = st.sampled_from(
    [
        call(message(BODY, length=2**32 - 1)),
        call(message(BODY, length=len(BODY) + 1)),
        call(message(BODY, compressed=1)),
        call(message(BODY, compressed=7)),
        call(message(BODY) * 3),
        call(b""),
        call(b"\0\0"),
        call(message(BODY), (b"grpc-timeout", b"1x")),
        call(message(BODY), (b"grpc-encoding", b"nobodys")),
        call(message(BODY), (b"grpc-timeout", b"1n")),
        call(message(BODY), (b"x-bin", b"!!!")),
        frame(HEADERS, 0, 1, b"\xff" * 20),
        frame(DATA, 0, 5, b"x"),
        frame(RST, 0, 1, b"\0\0\0\x08"),
        frame(SETTINGS, 0, 0, b"\0\x04\xff\xff\xff\xff"),
        frame(SETTINGS, 0, 0, b"\0\x05\0\0\0\0"),
        frame(PUSH, 4, 1, b"\0\0\0\x02"),
        frame(PING, 0, 0, b"x"),
        frame(GOAWAY, 0, 0, b"\0" * 8),
        frame(WINDOW, 0, 0, b"\0\0\0\0"),
        frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff"),
        frame(CONTINUATION, 0, 1, b"x"),
        frame(200, 255, 7, b"x" * 100),
        frame(DATA, 8, 1, b"\xff"),
        b"\xff" * 9,
    ]
)


@st.composite
def conversations(draw: st.DrawFn) -> bytes:
    """What somebody may send who thinks this is HTTP/2, or does not."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.binary(max_size=200))
    if kind == 1:
        return draw(st.sampled_from([cut, flipped, spliced]))(draw, WHOLE)
    frames = draw(st.lists(ODD_FRAMES, min_size=1, max_size=4))
    return PREFACE + SETTINGS_FRAME + b"".join(frames)


REQUEST = b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
LENGTHS = [b"content-length: %d\r\n" % length for length in (0, 5, len(CHAT), 10**9)] + [
    b"content-length: -1\r\n",
    b"content-length: 5\r\ncontent-length: 6\r\n",
    b"transfer-encoding: chunked\r\n",
    b"transfer-encoding: chunked\r\ncontent-length: 5\r\n",
    b"transfer-encoding: gzip, chunked\r\n",
    b"",
]
CHUNKS = [b"5\r\nhello\r\n0\r\n\r\n", b"ffffffffffffffff\r\n", b"-1\r\n", b"0\r\nx: y\r\n\r\n"]
LINES = [
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET http://[::1 HTTP/1.1\r\n\r\n",
    b"POST /v3/chat/completions\r\n\r\n",
    b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /health HTTP/1.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: x\r\n folded: y\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: x\r\nna me: y\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: x\r\nname: \0\r\n\r\n",
    b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n",
]


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """What somebody may send who thinks this is HTTP/1, or does not."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.sampled_from(LINES))
    if kind == 1:
        return draw(conversations())
    body = draw(st.sampled_from([CHAT, *CHUNKS]))
    request = REQUEST + draw(st.sampled_from(LENGTHS)) + b"\r\n" + body
    return request if kind == 2 else draw(st.sampled_from([cut, flipped, spliced]))(draw, request)


def say(port: int, data: bytes) -> None:
    """Send bytes, read what comes for a moment, and hang up."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        try:
            connection.sendall(data)
            while connection.recv(1 << 16):
                pass
        except OSError:
            # It hung up, or waits for more.
            return


@pytest.mark.parametrize("port", ["grpc_port", "rest_port"])
def test_frames(target: Target, port: str) -> None:
    @examples(30)
    @given(data=conversations())
    def send(data: bytes) -> None:
        say(getattr(target.stack, port), data)

    send()


def test_requests(target: Target) -> None:
    @examples(30)
    @given(data=requests())
    def send(data: bytes) -> None:
        say(target.stack.rest_port, data)

    send()
