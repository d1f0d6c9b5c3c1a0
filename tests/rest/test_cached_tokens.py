"""What usage says of the prefix cache."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.successor import new_prompt

if TYPE_CHECKING:
    import httpx

BLOCK = 32
LENGTH = 10 * BLOCK


def as_chat(text: str) -> tuple[str, dict[str, Any]]:
    return "/v3/chat/completions", {"messages": [{"role": "user", "content": text}]}


def as_text(text: str) -> tuple[str, dict[str, Any]]:
    return "/v3/completions", {"prompt": text}


@pytest.mark.parametrize("asked", [as_chat, as_text])
async def test_what_was_read_before_is_cached(http: httpx.AsyncClient, asked: Any) -> None:
    path, fields = asked(new_prompt(LENGTH))
    body = {"model": "successor", "max_tokens": 3, "n": 2, **fields}

    async def usage(**more: Any) -> dict[str, Any]:
        response = await http.post(path, json={**body, **more})
        assert response.status_code == 200, response.text
        events = response.text.removesuffix("data: [DONE]\n\n").split("data: ")
        counted: dict[str, Any] = json.loads(events[-1])["usage"]
        return counted

    first, again = await usage(), await usage()
    streamed = await usage(stream=True, stream_options={"include_usage": True})

    # A character is a token. The choices have one prompt, and the last token is always read.
    assert first["prompt_tokens"] == LENGTH
    assert first["prompt_tokens_details"] == {"cached_tokens": 0}
    assert again["prompt_tokens_details"] == {"cached_tokens": LENGTH - 1}
    assert streamed == again


async def test_each_prompt_counts(http: httpx.AsyncClient) -> None:
    known, new = (new_prompt(LENGTH) for _ in range(2))
    body = {"model": "successor", "max_tokens": 1, "n": 2}
    await http.post("/v3/completions", json={**body, "prompt": known})

    response = await http.post("/v3/completions", json={**body, "prompt": [known, new, known]})

    cached = response.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached == 2 * (LENGTH - 1)
