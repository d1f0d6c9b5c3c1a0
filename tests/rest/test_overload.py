"""More is asked than the engine can do: 429 at once, with a hint, and nobody else notices."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import openai
import pytest

from tests.rest.conftest import Stack, held, running_stack
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ovchat_server.settings import ModelSettings

# A place besides which there is no other.
ASKED: dict[str, Any] = {"model": "successor", "prompt": "-" * 140 + "a", "max_tokens": 60}
MAX_QUEUE = 2


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory, successor: ModelSettings) -> Iterator[Stack]:
    model = msgspec.structs.replace(successor, kv_blocks=8, max_queue=MAX_QUEUE)
    with running_stack(tmp_path_factory.mktemp("narrow"), model) as stack:
        yield stack


@pytest.fixture
async def client(narrow: Stack) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=f"{narrow.url}/v1", api_key="unused", max_retries=0
    ) as client:
        yield client


async def test_what_a_full_queue_refuses_may_come_back(
    narrow: Stack, client: openai.AsyncOpenAI
) -> None:
    ended = asyncio.as_completed([client.completions.create(**ASKED) for _ in range(12)])
    refused = []
    with held(narrow, "successor"):
        # At once: the engine has nothing to do with it.
        for _ in range(12 - MAX_QUEUE):
            with pytest.raises(openai.RateLimitError) as caught:
                await next(ended)
            refused.append(caught.value)
    answered = [await answer for answer in ended]

    assert [answer.choices[0].text for answer in answered] == [successor_text("a", 60)] * MAX_QUEUE
    for error in refused:
        assert (error.type, error.code) == ("rate_limit_error", "rate_limit_exceeded")
        assert "Try again" in error.message
        assert 1 <= int(error.response.headers["retry-after"]) <= 60


@pytest.mark.slow
async def test_the_sdk_comes_back_by_itself(narrow: Stack) -> None:
    async with openai.AsyncOpenAI(
        base_url=f"{narrow.url}/v1", api_key="unused", max_retries=20
    ) as patient:
        answers = await asyncio.gather(*(patient.completions.create(**ASKED) for _ in range(8)))
    assert {answer.choices[0].text for answer in answers} == {successor_text("a", 60)}


async def test_a_refused_stream_is_an_error_before_it_begins(narrow: Stack) -> None:
    body = {**ASKED, "stream": True}
    async with httpx.AsyncClient(base_url=narrow.url, timeout=None) as http:
        ended = asyncio.as_completed([http.post("/v3/completions", json=body) for _ in range(12)])
        with held(narrow, "successor"):
            refused = [await next(ended) for _ in range(12 - MAX_QUEUE)]
        answered = [await response for response in ended]

    assert {response.status_code for response in answered} == {200}
    for response in refused:
        assert response.status_code == 429
        assert response.headers["content-type"] == "application/json"
        assert response.json()["error"]["code"] == "rate_limit_exceeded"
