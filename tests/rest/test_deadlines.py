"""The server's own deadline, as a REST caller sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest

from tests.rest.conftest import Stack, running_stack, until_idle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ovchat_server.settings import ModelSettings

CHAT = "/v3/chat/completions"
LONG: dict[str, Any] = {
    "model": "successor",
    "messages": [{"role": "user", "content": "a"}],
    "max_tokens": 4000,
    # Together, more than the engine generates in a minute.
    "n": 64,
}


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory, successor: ModelSettings) -> Iterator[Stack]:
    options = ["--request-timeout", "0.5"]
    with running_stack(tmp_path_factory.mktemp("hasty"), successor, options=options) as stack:
        yield stack


@pytest.fixture
async def http(hasty: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=hasty.url, timeout=None) as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("path", [CHAT, "/v1/chat/completions", "/ovchat/v1/chat:create"])
async def test_an_answer_that_takes_too_long_is_a_timeout(
    http: httpx.AsyncClient, path: str
) -> None:
    typed = [{"role": "ROLE_USER", "content": [{"text": "a"}]}]
    body = {**LONG, "messages": typed} if path.startswith("/ovchat") else LONG
    answer = await http.post(path, json=body)

    assert answer.status_code == 504
    error = answer.json()["error"]
    assert "0.5 seconds" in error.pop("message")
    assert error == {"type": "server_error", "param": None, "code": "timeout"}
    await until_idle(http, "successor")


@pytest.mark.speed  # it begins within half a second, or is a timeout as a whole
async def test_a_stream_that_takes_too_long_ends_with_an_error_and_done(
    http: httpx.AsyncClient,
) -> None:
    answer = await http.post(CHAT, json={**LONG, "stream": True})

    assert answer.status_code == 200
    events = answer.text.strip().split("\n\n")
    assert events[-1] == "data: [DONE]"
    assert json.loads(events[-2].removeprefix("data: "))["error"]["code"] == "timeout"
    await until_idle(http, "successor")


@pytest.mark.speed
async def test_the_sdk_raises_in_the_middle_of_such_a_stream(hasty: Stack) -> None:
    async with openai.AsyncOpenAI(base_url=f"{hasty.url}/v1", api_key="x", max_retries=0) as sdk:
        stream = await sdk.chat.completions.create(**LONG, stream=True)
        with pytest.raises(openai.APIError, match=r"0\.5 seconds"):
            await anext(chunk async for chunk in stream if not chunk.choices)
