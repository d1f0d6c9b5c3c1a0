"""18 connections with 900 calls of Health/Watch each, without a key."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.attacks.probing import chat, figures, status
from tests.http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    field,
    frame,
    message,
    until,
)
from tests.launch.stack import running

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CONNECTIONS, WATCHES = 18, 900
TIMES = 100


def watch(stream: int) -> bytes:
    headers = (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/grpc.health.v1.Health/Watch"),
        (b":authority", b"x"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    )
    block = b"".join(field(name, value) for name, value in headers)
    return frame(HEADERS, END_HEADERS, stream, block) + frame(
        DATA, END_STREAM, stream, message(b"")
    )


async def hold(port: int) -> asyncio.StreamWriter:
    """One connection with all its watches, each of which has reached Envoy or the server."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    watches = b"".join(watch(2 * number + 1) for number in range(WATCHES))
    writer.write(PREFACE + frame(SETTINGS, 0, 0, b"") + watches + frame(PING, 0, 0, b"12345678"))
    await until(reader, PING)
    return writer


@pytest.mark.parametrize("port", ["rest_port", "grpc_port"])
async def test_probes_and_chats_are_answered_beside_them(tmp_path: Path, port: str) -> None:
    async with (
        running(tmp_path) as stack,
        httpx.AsyncClient(base_url=stack.url, timeout=60) as http,
    ):
        alone = [
            await figures(lambda: status(http, "/v2/health/ready"), TIMES),
            await figures(lambda: status(http, "/v3/chat/completions", chat()), TIMES),
        ]
        held = [await hold(getattr(stack, port)) for _ in range(CONNECTIONS)]
        beside = [
            await figures(lambda: status(http, "/v2/health/ready"), TIMES),
            await figures(lambda: status(http, "/v3/chat/completions", chat()), TIMES),
        ]
        for writer in held:
            writer.close()
    for what, one, other in zip(("readiness", "chat"), alone, beside, strict=True):
        print(f"{port}, {what}: alone {one}; beside the watches {other}")
        assert other.outcomes == {"200": TIMES}
