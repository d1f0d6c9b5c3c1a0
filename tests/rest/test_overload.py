"""More is asked than the engine can do: 429 at once, with a hint, and nobody else notices."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import openai
import pytest

from tests.rest.conftest import Stack, running_stack
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ovchat_server.settings import ModelSettings

# A place besides which there is no other.
ASKED: dict[str, Any] = {"model": "successor", "prompt": "-" * 140 + "a", "max_tokens": 60}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory, successor: ModelSettings) -> Iterator[Stack]:
    model = msgspec.structs.replace(successor, kv_blocks=8, max_queue=2)
    with running_stack(tmp_path_factory.mktemp("narrow"), model) as stack:
        yield stack


@pytest.fixture
async def client(narrow: Stack) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=f"{narrow.url}/v1", api_key="unused", max_retries=0
    ) as client:
        yield client


async def test_what_a_full_queue_refuses_may_come_back(client: openai.AsyncOpenAI) -> None:
    results = await asyncio.gather(
        *(client.completions.create(**ASKED) for _ in range(12)), return_exceptions=True
    )

    refused = [result for result in results if isinstance(result, openai.RateLimitError)]
    answered = [result for result in results if not isinstance(result, BaseException)]
    assert len(refused) + len(answered) == 12
    assert refused
    assert {answer.choices[0].text for answer in answered} == {successor_text("a", 60)}
    for error in refused:
        assert (error.type, error.code) == ("rate_limit_error", "rate_limit_exceeded")
        assert "Try again" in error.message
        assert 1 <= int(error.response.headers["retry-after"]) <= 60


async def test_the_sdk_comes_back_by_itself(narrow: Stack) -> None:
    async with openai.AsyncOpenAI(
        base_url=f"{narrow.url}/v1", api_key="unused", max_retries=20
    ) as patient:
        answers = await asyncio.gather(*(patient.completions.create(**ASKED) for _ in range(8)))
    assert {answer.choices[0].text for answer in answers} == {successor_text("a", 60)}


async def test_a_refused_stream_is_an_error_before_it_begins(narrow: Stack) -> None:
    async with httpx.AsyncClient(base_url=narrow.url, timeout=30) as http:
        responses = await asyncio.gather(
            *(http.post("/v3/completions", json={**ASKED, "stream": True}) for _ in range(12))
        )

    statuses = {response.status_code for response in responses}
    assert statuses == {200, 429}
    for response in responses:
        if response.status_code == 429:
            assert response.headers["content-type"] == "application/json"
            assert response.json()["error"]["code"] == "rate_limit_exceeded"
