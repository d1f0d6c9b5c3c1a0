"""What the client itself costs: it reads from a server that has all its answers ready.

    .venv/bin/python -m benchmarks.client_cost [--streams 16] [--tokens 500]

Prints the client's processor time for each event, how many events it reads a second, and how late
it notes an event that comes by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import Figures, quantile
from benchmarks.load_client import RestClient
from benchmarks.plan import Ask, Lane, Plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).resolve().parent.parent
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PACE = 0.005
PACED = 200


def _chunk(text: str, created: float = 0) -> bytes:
    """An event as the service sends it, in a chunk of its own."""
    value = {
        "id": "chatcmpl-0123456789abcdef0123456789abcdef",
        "object": "chat.completion.chunk",
        "created": created,
        "model": "bench",
        "system_fingerprint": "fp_0123456789",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}],
        "usage": None,
    }
    return _framed(json.dumps(value))


def _framed(data: str) -> bytes:
    event = f"data: {data}\n\n".encode()
    return f"{len(event):x}\r\n".encode() + event + b"\r\n"


def _end(tokens: int) -> bytes:
    usage = {"prompt_tokens": 1, "completion_tokens": tokens}
    last = _framed(json.dumps({"choices": [], "usage": usage}))
    return last + _framed("[DONE]") + b"0\r\n\r\n"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests of a connection: so many tokens as fast as they are read, or at a pace."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            request = json.loads(await reader.readexactly(length))
            tokens = request["max_completion_tokens"]
            writer.write(HEAD)
            if tokens == PACED:
                for _ in range(tokens):
                    await asyncio.sleep(PACE)
                    # Both processes read the same clock.
                    writer.write(_chunk(" Abc", time.perf_counter()))
            else:
                event = _chunk(" Abc")
                for _ in range(tokens):
                    writer.write(event)
                    await writer.drain()
                    # One event a packet, as a stream has them.
                    await asyncio.sleep(0)
            writer.write(_end(tokens))
            await writer.drain()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.asynccontextmanager
async def _canned() -> AsyncIterator[int]:
    """The server in a process of its own; its port."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.client_cost", "--serve"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None  # noqa: S101  for the type
    try:
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


async def client_cost(streams: int = 16, tokens: int = 500) -> Figures:
    """The client's cost, by name."""
    async with _canned() as port:
        rest = RestClient("bench", port)
        ask = Ask(messages=(("user", "Hello!"),), max_tokens=tokens)
        lanes = tuple(Lane((ask,)) for _ in range(streams))
        await rest.run(Plan((lanes,)))
        start, work = time.perf_counter(), time.process_time()
        await rest.run(Plan((lanes,)))
        seconds, work = time.perf_counter() - start, time.process_time() - work
        late = await _lateness(rest)
        await rest.close()
    events = streams * tokens
    return {
        "client us per event": work / events * 1e6,
        "events/s": events / seconds,
        "noted late us": statistics.median(late) * 1e6,
        "noted late p99 us": quantile(late, 0.99) * 1e6,
    }


async def _lateness(rest: RestClient) -> list[float]:
    """Seconds from when an event was sent to when the client noted it, of one slow stream."""
    body = json.dumps({"max_completion_tokens": PACED}).encode()
    head = f"POST / HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    _, parts = await rest.send(head + body)
    mark = b'"created": '
    return [
        moment - float(data.partition(mark)[2].partition(b",")[0])
        for moment, data in parts
        if mark in data
    ]


def main() -> None:
    """Read the command line; serve, or measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--serve", action="store_true", help="be the server")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve())
        return
    for name, value in asyncio.run(client_cost(options.streams, options.tokens)).items():
        print(f"{name:<22}{value:>12.1f}")


if __name__ == "__main__":
    main()
