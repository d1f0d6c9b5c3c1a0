"""Readers of next to nothing hold back only themselves, and take a bounded share of memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.conftest import until_idle
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

    from tests.rest.conftest import Stack

SLOW, FAST, TOKENS = 50, 16, 200
PATH = "/v3/chat/completions"
MIB = 1 << 20
# Of all 50 answers together, with room for what the allocators keep.
MOST_GROWTH = 200 * MIB


def stream(text: str, tokens: int, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    request = {"model": "successor", "messages": messages, "max_tokens": tokens, "temperature": 0}
    return {**request, "stream": True, **fields}


@contextlib.asynccontextmanager
async def slow_readers(port: int) -> AsyncIterator[list[socket.socket]]:
    """Connections over which long answers come, of which only the first byte was read."""
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(socket.socket()) for _ in range(SLOW)]
        for reader in readers:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            reader.setblocking(False)  # noqa: FBT003  the standard library's signature
            await loop.sock_connect(reader, ("127.0.0.1", port))
            body = json.dumps(stream("a", 1000, logprobs=True)).encode()
            head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            head += f"content-length: {len(body)}\r\n\r\n"
            await loop.sock_sendall(reader, head.encode() + body)
        for reader in readers:
            assert await loop.sock_recv(reader, 1) == b"H"
        yield readers


async def text_of(http: httpx.AsyncClient, text: str) -> str:
    answer = await http.post(PATH, json=stream(text, TOKENS))
    events = [line[6:] for line in answer.text.split("\n\n") if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events]
    return "".join(delta.get("content") or "" for delta in deltas)


def resident(stack: Stack) -> int:
    """Bytes that Envoy and the server take."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == stack.process.pid:
                total += int((stat.parent / "statm").read_text().split()[1]) * 4096
    return total


@pytest.mark.slow
async def test_slow_readers_beside_fast_ones(stack: Stack, http: httpx.AsyncClient) -> None:
    before = resident(stack)
    async with slow_readers(stack.rest_port) as readers:
        prompts = [chr(ord("A") + number) for number in range(FAST)]

        texts = await asyncio.gather(*(text_of(http, prompt) for prompt in prompts))

        assert texts == [successor_text(prompt, TOKENS) for prompt in prompts]
        # Their answers are made, and wait; no reader holds a block for what it has not read.
        await until_idle(http, "successor")
        assert await asyncio.gather(*(text_of(http, prompt) for prompt in prompts)) == texts
        assert resident(stack) - before < MOST_GROWTH
        # Another byte still comes.
        assert await asyncio.get_running_loop().sock_recv(readers[0], 1) == b"T"
