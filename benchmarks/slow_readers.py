"""What readers of one byte a second cost those who read as fast as they can.

    .venv/bin/python benchmarks/slow_readers.py [--rest-port 8000] [--slow 50] [--fast 16]

Needs `ovchat up` on this machine with a model that is fast, such as models/successor. Measures the
tokens a second of the fast readers alone, while the slow ones' answers are generated, and when
these are generated but not read; and what Envoy and the server take of memory meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATH = "/v3/chat/completions"
MIB = 1 << 20
PAGE = 4096


def body(model: str, tokens: int) -> dict[str, object]:
    """A request for a long stream."""
    messages = [{"role": "user", "content": "a"}]
    return {
        "model": model,
        "messages": messages,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "logprobs": True,
        "stream": True,
    }


async def read_slowly(port: int, request: dict[str, object]) -> None:
    """Ask, and read a byte a second."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        # As little as the kernel allows, so that what is not read stays with the service.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connection.setblocking(False)  # noqa: FBT003  the standard library's signature
        await loop.sock_connect(connection, ("127.0.0.1", port))
        data = json.dumps(request).encode()
        head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        await loop.sock_sendall(connection, f"{head}content-length: {len(data)}\r\n\r\n".encode())
        await loop.sock_sendall(connection, data)
        while await loop.sock_recv(connection, 1):  # noqa: ASYNC110  the pace is the point
            await asyncio.sleep(1)


@contextlib.asynccontextmanager
async def slow_readers(port: int, count: int, request: dict[str, object]) -> AsyncIterator[None]:
    """Slow readers, for a while."""
    tasks = [asyncio.create_task(read_slowly(port, request)) for _ in range(count)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def speed(client: httpx.AsyncClient, count: int, request: dict[str, object]) -> float:
    """Tokens a second of so many fast readers together."""
    start = time.perf_counter()
    answers = await asyncio.gather(*(client.post(PATH, json=request) for _ in range(count)))
    seconds = time.perf_counter() - start
    for answer in answers:
        answer.raise_for_status()
    return sum(answer.text.count('"bytes"') for answer in answers) / seconds


async def load(client: httpx.AsyncClient, model: str) -> dict[str, int]:
    """The load of a model's engine."""
    answer = await client.get(f"/ovchat/v1/models/{model}")
    found: dict[str, int] = answer.json()["model"].get("load", {})
    return found


def memory() -> dict[str, int]:
    """Resident bytes of Envoy and the server, by the names that `ovchat up` gives them."""
    found: dict[str, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name = (process / "cmdline").read_text().replace("\0", " ").strip()
            for known in ("ovchat server", "ovchat-envoy"):
                if name.startswith(known):
                    pages = int((process / "statm").read_text().split()[1])
                    found[known] = found.get(known, 0) + pages * PAGE
    return found


async def measure(arguments: argparse.Namespace) -> None:
    """Run the phases and print what they gave."""
    base = f"http://127.0.0.1:{arguments.rest_port}"
    slow, fast = (body(arguments.model, tokens) for tokens in (arguments.tokens, 200))
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=base, timeout=600, limits=limits) as client:

        async def fast_speed() -> float:
            return max([await speed(client, arguments.fast, fast) for _ in range(arguments.rounds)])

        await fast_speed()
        alone, before = await fast_speed(), memory()
        async with slow_readers(arguments.rest_port, arguments.slow, slow):
            while not (await load(client, arguments.model)).get("running_requests"):
                pass
            beside = await speed(client, arguments.fast, fast)
            while (await load(client, arguments.model)).get("running_requests"):
                pass
            after, grown = await fast_speed(), memory()
    print(f"{arguments.fast} fast readers alone: {alone:.0f} tokens/s")
    print(f"while answers of {arguments.slow} slow ones are generated: {beside:.0f} tokens/s")
    print(f"when those wait to be read: {after:.0f} tokens/s, {after / alone:.2f} of alone")
    for name, taken in grown.items():
        more = (taken - before[name]) / MIB
        print(f"{name}: {taken / MIB:.0f} MiB, {more:.1f} MiB more than before")


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rest-port", type=int, default=8000)
    parser.add_argument("--model", default="successor")
    parser.add_argument("--slow", type=int, default=50)
    parser.add_argument("--fast", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=2000, help="of each slow reader's answer")
    parser.add_argument("--rounds", type=int, default=10)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
