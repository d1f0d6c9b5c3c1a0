"""What REST callers see of an engine that dies: a pause."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

    from tests.rest.conftest import Stack

LONG = {
    "model": "successor",
    "messages": [{"role": "user", "content": "a"}],
    "max_tokens": 4000,
    "temperature": 0,
}


def descendants(ancestor: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                parent = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                # It ended while we looked.
                continue
            children.setdefault(parent, []).append(int(directory.name))
    found = [ancestor]
    for pid in found:
        found += children.get(pid, [])
    return found


def engine_of(stack: Stack, model: str) -> int:
    title = f"ovchat engine {model}"
    [pid] = [
        pid
        for pid in descendants(stack.process.pid)
        if Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode() == title
    ]
    return pid


@pytest.fixture(autouse=True)
async def whole_again(http: httpx.AsyncClient) -> AsyncIterator[None]:
    """What fails here leaves no dead engine to the tests that come after."""
    yield
    await until_ready(http)


async def until_running(http: httpx.AsyncClient, requests: int) -> None:
    """Until the engine has that many requests: what comes later finds it dead, and is refused."""
    running = 0
    while running < requests:
        answer = await http.get("/ovchat/v1/models/successor")
        running = answer.json()["model"]["load"]["running_requests"]


async def until_ready(http: httpx.AsyncClient) -> None:
    while (await http.get("/v2/health/ready")).status_code != 200:
        pass


async def test_a_stream_goes_on_where_the_engine_died(
    stack: Stack, http: httpx.AsyncClient
) -> None:
    request = http.stream("POST", "/v3/chat/completions", json={**LONG, "stream": True})
    async with request as response:
        lines = response.aiter_lines()
        said = [await anext(lines)]

        os.kill(engine_of(stack, "successor"), signal.SIGKILL)

        # What is asked while it is away: told so, with a hint when to come back.
        while (unready := await http.get("/health")).status_code == 200:
            pass
        refused = await http.post("/v3/chat/completions", json=LONG)
        assert (refused.status_code, unready.status_code) == (503, 503)
        assert refused.headers["retry-after"]
        assert refused.json()["error"]["type"] == "server_error"
        assert "successor" in unready.json()["error"]["message"]
        assert (await http.get("/v2/health/live")).status_code == 200

        *rest, done = [line async for line in lines if line]
    chunks = [json.loads(line.removeprefix("data: ")) for line in [*said, *rest] if line]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == successor_text("a", 4000)
    assert done == "data: [DONE]"


async def test_a_whole_answer_is_no_other_where_the_engine_died(
    stack: Stack, http: httpx.AsyncClient
) -> None:
    async with http.stream("POST", "/v3/chat/completions", json={**LONG, "stream": True}):
        whole = asyncio.create_task(http.post("/v3/chat/completions", json=LONG))
        await until_running(http, 2)

        os.kill(engine_of(stack, "successor"), signal.SIGKILL)
        response = await whole

    assert response.status_code == 200
    content = response.json()["choices"][0]["message"]["content"]
    assert content == successor_text("a", 4000)
