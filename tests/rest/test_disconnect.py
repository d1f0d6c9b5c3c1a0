"""A REST client that goes away frees its engine request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.rest.conftest import given_up, until_idle, until_some

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

CHAT = "/v3/chat/completions"
# Whole, more than the engine generates in a minute.
CHOICES, TOKENS = 64, 4000
LONG = {
    "model": "successor",
    "messages": [{"role": "user", "content": "a"}],
    "max_tokens": TOKENS,
    "n": CHOICES,
}


async def left_while_streaming(http: httpx.AsyncClient) -> None:
    async with http.stream("POST", CHAT, json={**LONG, "stream": True}) as response:
        await anext(response.aiter_bytes())


async def test_while_streaming(http: httpx.AsyncClient) -> None:
    async with given_up(http, "successor", CHOICES * TOKENS):
        await left_while_streaming(http)


@pytest.mark.speed
async def test_within_a_second(http: httpx.AsyncClient) -> None:
    await left_while_streaming(http)
    async with asyncio.timeout(1):
        await until_idle(http, "successor")


async def test_while_waiting_for_the_whole_answer(http: httpx.AsyncClient) -> None:
    async with given_up(http, "successor", CHOICES * TOKENS):
        call = asyncio.create_task(http.post(CHAT, json=LONG))
        await until_some(http, "successor")

        call.cancel()

        with pytest.raises(asyncio.CancelledError):
            await call


async def test_with_the_connection(stack: Stack, http: httpx.AsyncClient) -> None:
    body = httpx.Request("POST", stack.url, json={**LONG, "stream": True}).read()
    async with given_up(http, "successor", CHOICES * TOKENS):
        reader, writer = await asyncio.open_connection("127.0.0.1", stack.rest_port)
        writer.write(
            b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(body), body)
        )
        await reader.readuntil(b"data: ")

        writer.transport.abort()


async def test_others_go_on(http: httpx.AsyncClient) -> None:
    # Few enough for all to wait in the queue.
    few = {**LONG, "n": 16}
    async with given_up(http, "successor", 8 * 16 * TOKENS):
        doomed = [asyncio.create_task(http.post(CHAT, json=few)) for _ in range(8)]
        one = {**LONG, "n": 1, "max_tokens": 500}
        healthy = asyncio.create_task(http.post(CHAT, json=one))
        await until_some(http, "successor")

        for call in doomed:
            call.cancel()

        assert (await healthy).json()["usage"]["completion_tokens"] == 500


async def test_while_queued(http: httpx.AsyncClient) -> None:
    async with given_up(http, "successor", 8 * 128 * TOKENS):
        # Twice what the cache holds of their beginnings alone: half of them wait.
        many = {**LONG, "n": 128}
        calls = [asyncio.create_task(http.post(CHAT, json=many)) for _ in range(8)]
        await until_some(http, "successor", "waiting_requests")

        for call in calls:
            call.cancel()
