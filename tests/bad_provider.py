"""A provider with Chat Completions that misbehaves: how, is the model's name."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tests.http_server import http_server, read_request, response
from tests.ports import unused_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from typing import Any

KEY = "sk-the-operators-own"
CHUNK = {
    "id": "x",
    "object": "chat.completion.chunk",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": "a"}}],
}
WHOLE = {
    "id": "x",
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "all is well"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}


@dataclass
class BadProvider:
    """Where it listens, and what it saw."""

    port: int
    headers: list[dict[str, str]] = field(default_factory=list)
    # Set when the caller of a model that never ends has gone.
    left: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def table(self) -> str:
        """Its table of a config file, and routes to its models."""
        return f"""
[[providers]]
name = "bad"
base_url = "http://127.0.0.1:{self.port}/v1"
api_key_env = "BAD_PROVIDER_KEY"
timeout = 1
max_requests = 4

[[providers]]
name = "patient"
base_url = "http://127.0.0.1:{self.port}/v1"

[[routes]]
name = "careful"
models = ["bad/fails", "bad/hangs", "bad/good"]

[[routes]]
name = "in-vain"
models = ["bad/fails", "bad/full"]
"""


@contextlib.asynccontextmanager
async def bad_provider() -> AsyncIterator[BadProvider]:
    """Serve it."""
    provider = BadProvider(unused_port())
    async with http_server(provider.port, partial(_answer, provider)):
        yield provider


async def _answer(
    provider: BadProvider, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Answer one request; return whether the connection is kept."""
    request = await read_request(reader)
    provider.headers.append(request.headers)
    if request.line.startswith("GET"):
        writer.write(response(200, json.dumps({"data": [{"id": name} for name in MANNERS]})))
        return True
    provider.asked.set()
    model = json.loads(request.body)["model"]
    kept = await MANNERS[model](provider, reader, writer)
    await writer.drain()
    return kept


def _events(*events: str) -> bytes:
    """The beginning of a stream."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    return head + b"transfer-encoding: chunked\r\n\r\n" + b"".join(map(_piece, events))


def _piece(event: str) -> bytes:
    data = f"data: {event}\n\n".encode()
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _says(answer: bytes, *, kept: bool = True) -> Callable[..., Coroutine[Any, Any, bool]]:
    async def say(_: BadProvider, __: object, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer)
        return kept

    return say


async def _hang(provider: BadProvider, reader: asyncio.StreamReader, _: object) -> bool:
    """Say nothing until the caller leaves."""
    await reader.read()
    provider.left.set()
    return False


async def _endless(
    provider: BadProvider, _: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Stream tokens until the caller leaves."""
    writer.write(_events(json.dumps(CHUNK)))
    with contextlib.suppress(OSError):
        while True:
            writer.write(_piece(json.dumps(CHUNK)))
            await writer.drain()
            await asyncio.sleep(0.01)
    provider.left.set()
    return False


async def _endless_body(
    provider: BadProvider, _: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Send a JSON string without end."""
    writer.write(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"choices": "')
    with contextlib.suppress(OSError):
        while True:
            writer.write(b"a" * (1 << 20))
            await writer.drain()
    provider.left.set()
    return False


def _error(message: str, **fields: str) -> str:
    return json.dumps({"error": {"message": message, **fields}})


MANNERS: dict[str, Callable[..., Coroutine[Any, Any, bool]]] = {
    "good": _says(response(200, json.dumps(WHOLE))),
    "hangs": _hang,
    "endless": _endless,
    "endless-body": _endless_body,
    "dies": _says(_events(json.dumps(CHUNK)), kept=False),
    "closes": _says(b"", kept=False),
    "no-done": _says(_events(json.dumps(CHUNK)) + b"0\r\n\r\n"),
    "broken-events": _says(_events(json.dumps(CHUNK), "{not json")),
    "error-event": _says(_events(json.dumps(CHUNK), _error("out of memory"))),
    "wrong-json": _says(response(200, '{"choices": 7}')),
    "no-json": _says(response(200, "<html>")),
    "invalid": _says(response(400, _error("no such temperature", param="temperature", code="x"))),
    "unknown": _says(response(404, _error("no such model"))),
    "full": _says(response(429, _error("slow down"), headers="retry-after: 7\r\n")),
    "full-for-ever": _says(
        response(429, _error("\N{SNAIL}" * 1000), headers="retry-after: inf\r\n")
    ),
    "fails": _says(response(500, _error("it broke"))),
    "key": _says(response(401, _error(f"wrong key {KEY}"))),
    "streams-nothing": _says(response(200, json.dumps(WHOLE))),
    "key-in-event": _says(_events(json.dumps(CHUNK), _error(f"what is {KEY}"))),
    "key-in-answer": _says(response(200, _error(f"what is {KEY}"))),
    "key-told": _says(response(400, _error(f"what is {KEY}"))),
}
