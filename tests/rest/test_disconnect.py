"""A REST client that goes away frees its engine request within a second."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.rest.conftest import until_idle

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

# Within a second nothing may be held any more.
pytestmark = pytest.mark.speed

LONG = {"model": "successor", "messages": [{"role": "user", "content": "a"}], "max_tokens": 4000}


async def until_running(http: httpx.AsyncClient) -> None:
    while True:
        model = (await http.get("/ovchat/v1/models/successor")).json()["model"]
        if model["load"]["running_requests"]:
            return


async def test_while_streaming(http: httpx.AsyncClient) -> None:
    async with http.stream(
        "POST", "/v3/chat/completions", json={**LONG, "stream": True}
    ) as response:
        await anext(response.aiter_bytes())

    await until_idle(http, "successor")


async def test_while_waiting_for_the_whole_answer(http: httpx.AsyncClient) -> None:
    call = asyncio.create_task(http.post("/v3/chat/completions", json=LONG))
    await until_running(http)

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await until_idle(http, "successor")


async def test_with_the_connection(stack: Stack, http: httpx.AsyncClient) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", stack.rest_port)
    body = httpx.Request("POST", stack.url, json={**LONG, "stream": True}).read()
    writer.write(
        b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (len(body), body)
    )
    await reader.readuntil(b"data: ")

    writer.transport.abort()

    await until_idle(http, "successor")


async def test_others_go_on(http: httpx.AsyncClient) -> None:
    doomed = [asyncio.create_task(http.post("/v3/chat/completions", json=LONG)) for _ in range(8)]
    healthy = asyncio.create_task(
        http.post("/v3/chat/completions", json={**LONG, "max_tokens": 500})
    )
    await until_running(http)

    for call in doomed:
        call.cancel()

    assert (await healthy).json()["usage"]["completion_tokens"] == 500
    await until_idle(http, "successor")


async def test_while_queued(http: httpx.AsyncClient) -> None:
    # Twice what the cache holds of their beginnings alone: half of them wait.
    many = {**LONG, "n": 128}
    calls = [asyncio.create_task(http.post("/v3/chat/completions", json=many)) for _ in range(8)]
    while not (await load(http)).get("waiting_requests"):
        pass

    for call in calls:
        call.cancel()

    await until_idle(http, "successor")


async def load(http: httpx.AsyncClient) -> dict[str, int]:
    found: dict[str, int] = (await http.get("/ovchat/v1/models/successor")).json()["model"]["load"]
    return found
