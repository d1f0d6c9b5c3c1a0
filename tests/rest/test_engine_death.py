"""What REST callers see of an engine that dies: an error in its place, then service again."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


async def until_ready(http: httpx.AsyncClient) -> None:
    while (await http.get("/v2/health/ready")).status_code != 200:
        pass


async def test_a_stream_ends_with_an_error_event_and_service_comes_back(
    stack: Stack, http: httpx.AsyncClient
) -> None:
    request = http.stream("POST", "/v3/chat/completions", json={**LONG, "stream": True})
    async with request as response:
        lines = response.aiter_lines()
        await anext(lines)

        os.kill(engine_of(stack, "successor"), signal.SIGKILL)

        *_, error, done = [line async for line in lines if line]
    assert response.status_code == 200
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == "service_unavailable"
    assert done == "data: [DONE]"

    # What is asked while it is away: told so, with a hint when to come back.
    refused = await http.post("/v3/chat/completions", json=LONG)
    unready = await http.get("/health")
    assert (refused.status_code, unready.status_code) == (503, 503)
    assert refused.headers["retry-after"]
    assert refused.json()["error"]["type"] == "server_error"
    assert "successor" in unready.json()["error"]["message"]
    assert (await http.get("/v2/health/live")).status_code == 200

    await until_ready(http)
    answer = await http.post("/v3/chat/completions", json={**LONG, "max_tokens": 3})
    assert answer.json()["choices"][0]["message"]["content"] == "bcd"


async def test_a_whole_answer_under_way_becomes_unavailable(
    stack: Stack, http: httpx.AsyncClient
) -> None:
    async with http.stream("POST", "/v3/chat/completions", json={**LONG, "stream": True}) as other:
        await anext(other.aiter_lines())

        os.kill(engine_of(stack, "successor"), signal.SIGKILL)
        response = await http.post("/v3/chat/completions", json=LONG)

    assert response.status_code == 503
    await until_ready(http)
