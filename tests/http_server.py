"""A server of HTTP/1.1 that says what a test wants, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


@dataclass(frozen=True)
class Request:
    """The first line, the headers with their names in small letters, and the body."""

    line: str
    headers: dict[str, str]
    body: bytes


@contextlib.asynccontextmanager
async def http_server(
    port: int, answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]
) -> AsyncIterator[None]:
    """Have requests answered, one after the other, as long as `answer` keeps the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while await answer(reader, writer):
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Read a request whose body has a length."""
    line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {name.lower(): value for name, value in (item.split(": ", 1) for item in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(line, headers, body)


def response(status: int, body: str, kind: str = "application/json", headers: str = "") -> bytes:
    """Return a response; further `headers` end with their line breaks."""
    data = body.encode()
    head = f"HTTP/1.1 {status} Whatever\r\ncontent-type: {kind}\r\n{headers}"
    return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data
