"""A server of Chat Completions that has all its answers ready, in a process of its own.

A model's name is the events that each of its streams has a second; "0": as fast as they are read.
The text of an event is when it was sent, in seconds of time.perf_counter: the clock of all
processes of a machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).resolve().parent.parent
UNPACED = "0"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
MODELS = json.dumps({"object": "list", "data": [{"id": UNPACED, "object": "model"}]}).encode()


def _framed(data: str) -> bytes:
    """An event in a chunk of its own."""
    event = f"data: {data}\n\n".encode()
    return f"{len(event):x}\r\n".encode() + event + b"\r\n"


# As the service sends it.
MOMENT = "0000000000.000000"
EVENT = {
    "id": "chatcmpl-0123456789abcdef0123456789abcdef",
    "object": "chat.completion.chunk",
    "created": 0,
    "model": "bench",
    "system_fingerprint": "fp_0123456789",
    "choices": [{"index": 0, "delta": {"content": MOMENT}, "finish_reason": None}],
    "usage": None,
}
BEFORE, _, AFTER = _framed(json.dumps(EVENT)).partition(MOMENT.encode())


def moments(data: bytes) -> list[float]:
    """When an event with text was sent; nothing of others."""
    choices = json.loads(data)["choices"]
    return [float(text) for choice in choices if (text := choice["delta"].get("content"))]


def _end(tokens: int) -> bytes:
    choice = {"index": 0, "delta": {}, "finish_reason": "length"}
    usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
    ends = ({"choices": [choice]}, {"choices": [], "usage": usage})
    return b"".join(_framed(json.dumps(end)) for end in ends) + _framed("[DONE]") + b"0\r\n\r\n"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests of a connection."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while head := (await reader.readuntil(b"\r\n\r\n")).lower():
            if head.startswith(b"get "):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(MODELS))
                writer.write(MODELS)
                continue
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            request = json.loads(await reader.readexactly(length))
            writer.write(HEAD)
            await _stream(writer, request["max_completion_tokens"], float(request["model"]))
    writer.close()


async def _stream(writer: asyncio.StreamWriter, tokens: int, pace: float) -> None:
    start = time.perf_counter()
    for number in range(tokens):
        if pace and number:
            await asyncio.sleep(start + number / pace - time.perf_counter())
        writer.write(BEFORE + b"%017.6f" % time.perf_counter() + AFTER)
        await writer.drain()
        # One event a packet, as a stream has them.
        await asyncio.sleep(0)
    writer.write(_end(tokens))
    await writer.drain()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.asynccontextmanager
async def canned_server() -> AsyncIterator[int]:
    """The server in a process of its own; its port."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.canned_server"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None  # noqa: S101  for the type
    try:
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(_serve())
