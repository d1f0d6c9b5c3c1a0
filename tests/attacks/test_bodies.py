"""Sixty bodies of which a byte is missing, from somebody without a key."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.rest.conftest import Stack, descendants, running_stack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.settings import ModelSettings

pytestmark = pytest.mark.slow
BODY = 8 * 2**20 - 1
BODIES = 60
KEY = "sk-harmed-caller"


def envoys_memory(stack: Stack) -> int:
    """MiB."""
    for pid in descendants(stack.process.pid):
        status = Path(f"/proc/{pid}/status").read_text()
        if "Name:\tenvoy" in status or "ovchat-envoy" in Path(f"/proc/{pid}/cmdline").read_text():
            return int(status.split("VmRSS:")[1].split()[0]) >> 10
    pytest.fail("there is no Envoy")


@contextlib.asynccontextmanager
async def bodies(stack: Stack) -> AsyncIterator[int]:
    """All that a server takes of them; how many were refused."""
    writers, refused = [], 0

    async def send() -> None:
        nonlocal refused
        reader, writer = await asyncio.open_connection("127.0.0.1", stack.rest_port)
        writers.append(writer)
        writer.write(
            b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n" % (BODY + 1)
        )
        with contextlib.suppress(ConnectionError):
            for _ in range(BODY >> 16):
                writer.write(b" " * (1 << 16))
                await writer.drain()
        # An answer, or the connection's end, before the body is whole; none while it is awaited.
        with contextlib.suppress(TimeoutError):
            with contextlib.suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), 1)
            refused += 1

    try:
        await asyncio.gather(*(send() for _ in range(BODIES)))
        yield refused
    finally:
        for writer in writers:
            writer.close()


async def figures(stack: Stack) -> list[float]:
    """Seconds of each of the harmed caller's requests."""
    body = {"model": "successor", "messages": [{"role": "user", "content": "a"}], "max_tokens": 3}
    taken = []
    async with httpx.AsyncClient(base_url=stack.url, timeout=None) as client:
        for _ in range(20):
            began = time.monotonic()
            headers = {"authorization": f"Bearer {KEY}"}
            answer = await client.post("/v3/chat/completions", json=body, headers=headers)
            assert answer.status_code == 200
            taken.append(time.monotonic() - began)
    return sorted(taken)


@pytest.mark.parametrize("keys", [False, True])
async def test_bodies_without_a_key_take_no_memory(
    tmp_path: Path, successor: ModelSettings, *, keys: bool
) -> None:
    file = tmp_path / "keys"
    file.write_text(KEY)
    options = ["--api-key-file", str(file)] if keys else []
    with running_stack(tmp_path, successor, options=options) as stack:
        alone, before = await figures(stack), envoys_memory(stack)
        async with bodies(stack) as refused:
            beside, held = await figures(stack), envoys_memory(stack) - before
    print(
        f"keys: {keys}; refused: {refused}; Envoy holds {held} MiB more; "
        f"median of requests alone {alone[10]:.3f} s, beside them {beside[10]:.3f} s"
    )
    if keys:
        assert refused > 0
        assert held < 100
    else:
        # Where anybody may call, they are taken for requests: Envoy's heap is their bound.
        assert held > 300
