"""What REST callers see of an engine that dies: a pause."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.rest.conftest import POLL, engines_of, until_some
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

    from tests.rest.conftest import Stack

TOKENS = 2000
LONG = {
    "model": "successor",
    "messages": [{"role": "user", "content": "a"}],
    "max_tokens": TOKENS,
    "temperature": 0,
}


@pytest.fixture(autouse=True)
async def whole_again(http: httpx.AsyncClient) -> AsyncIterator[None]:
    """What fails here leaves no dead engine to the tests that come after."""
    yield
    await until_ready(http)


async def until_ready(http: httpx.AsyncClient) -> None:
    while True:
        if (await http.get("/v2/health/ready")).status_code == 200:
            return
        await asyncio.sleep(POLL)


async def killed(stack: Stack) -> int:
    """Kill the engine; the one that takes its place, held while it loads the model."""
    [engine] = engines_of(stack, "successor")
    os.kill(engine, signal.SIGKILL)
    while True:
        if found := [pid for pid in engines_of(stack, "successor") if pid != engine]:
            os.kill(found[0], signal.SIGSTOP)
            return found[0]
        await asyncio.sleep(POLL)


async def test_a_stream_goes_on_where_the_engine_died(
    stack: Stack, http: httpx.AsyncClient
) -> None:
    request = http.stream("POST", "/v3/chat/completions", json={**LONG, "stream": True})
    async with request as response:
        lines = response.aiter_lines()
        said = [await anext(lines)]

        successor = await killed(stack)
        try:
            # What is asked while it is away: told so, with a hint when to come back.
            unready = await http.get("/health")
            refused = await http.post("/v3/chat/completions", json=LONG)
            assert (refused.status_code, unready.status_code) == (503, 503)
            assert refused.headers["retry-after"]
            assert refused.json()["error"]["type"] == "server_error"
            assert "successor" in unready.json()["error"]["message"]
            assert (await http.get("/v2/health/live")).status_code == 200
        finally:
            os.kill(successor, signal.SIGCONT)

        *rest, done = [line async for line in lines if line]
    # A new engine may take so long that there are comments.
    data = [line for line in [*said, *rest] if line.startswith("data: ")]
    chunks = [json.loads(line.removeprefix("data: ")) for line in data]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == successor_text("a", TOKENS)
    assert done == "data: [DONE]"


@pytest.mark.slow
async def test_a_whole_answer_is_no_other_where_the_engine_died(
    stack: Stack, http: httpx.AsyncClient
) -> None:
    # So many that the engine is at it for seconds: one could be done before it is killed.
    posts = [http.post("/v3/chat/completions", json=LONG) for _ in range(4)]
    answering = asyncio.gather(*posts)
    await until_some(http, "successor")
    [engine] = engines_of(stack, "successor")

    os.kill(engine, signal.SIGKILL)
    responses = await answering

    # Those that came when the server knew of its death were refused.
    answered = [response.json() for response in responses if response.status_code == 200]
    assert {response.status_code for response in responses} <= {200, 503}
    texts = {answer["choices"][0]["message"]["content"] for answer in answered}
    assert texts == {successor_text("a", TOKENS)}
