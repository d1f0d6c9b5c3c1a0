"""55 kB of 0xFF in the header of a call that has a key in another one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.attacks.probing import chat, figures, status
from tests.http2 import HEADERS as ANSWER
from tests.http2 import PREFACE, SETTINGS, call, frame, message, until
from tests.launch.stack import Stack, running

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TIMES, CALLS = 50, 20
SECRET = b"sk-of-somebody"
HEADERS = [(b"x-title", b"\xff" * 55_000), (b"authorization", b"Bearer " + SECRET + b"\xff")]


async def native(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = b"/ovchat.v1.ModelService/ListModels"
    writer.write(PREFACE + frame(SETTINGS, 0, 0, b"") + call(message(b""), *HEADERS, path=path))
    await until(reader, ANSWER)
    writer.close()


async def rest(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = b"".join(b"%s: %s\r\n" % header for header in HEADERS)
    writer.write(b"GET /v3/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + lines + b"\r\n")
    await reader.read()
    writer.close()


async def attack(stack: Stack, kind: str) -> None:
    for _ in range(CALLS):
        if kind == "rest":
            await rest(stack.rest_port)
        else:
            await native(getattr(stack, kind))


@pytest.mark.parametrize("kind", ["rest", "rest_port", "grpc_port"])
async def test_the_log_stays_small_and_has_no_key(tmp_path: Path, kind: str) -> None:
    async with (
        running(tmp_path) as stack,
        httpx.AsyncClient(base_url=stack.url, timeout=60) as http,
    ):
        path = "/v3/chat/completions"
        alone = await figures(lambda: status(http, path, chat()), TIMES)
        before = stack.log.stat().st_size
        attacking = asyncio.create_task(attack(stack, kind))
        beside = await figures(lambda: status(http, path, chat()), TIMES)
        await attacking
        grown = (tmp_path / "log").read_bytes()[before:]
    print(f"{kind}: alone {alone}; beside {beside}; log {len(grown)} bytes")
    assert beside.outcomes == {"200": TIMES}
    assert SECRET not in grown
    # A line for each request, with what was done for it.
    assert len(grown) < (TIMES + CALLS) * 1000
