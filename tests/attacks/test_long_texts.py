"""Megabytes of text that are tokenized keep no other caller waiting, and leave no memory behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.attacks.callers import Callers, calling
from tests.soak import taken

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.attacks.callers import Seconds

pytestmark = [pytest.mark.slow]

CHATS = 20
# A token each, and no place to cut them.
SPACES = " " * 3_000_000
# As much as `/tokenize` takes.
LONG = " " * (1 << 21)


@pytest.fixture(scope="module")
async def callers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Callers]:
    async with calling(tmp_path_factory.mktemp("long-texts")) as callers:
        yield callers


@pytest.fixture(scope="module")
async def alone(callers: Callers) -> Seconds:
    await callers.chats(2)
    return await callers.chats(CHATS)


async def test_spaces_to_be_truncated_keep_no_chat_waiting(
    callers: Callers, alone: Seconds
) -> None:
    body = {"model": "demo", "prompt": SPACES, "truncate_prompt_tokens": 10, "max_tokens": 1}
    attacks = [
        asyncio.create_task(callers.attacker.post("/v3/completions", json=body)) for _ in range(6)
    ]
    beside = await callers.chats(CHATS)
    responses = await asyncio.gather(*attacks)
    print(f"alone: {alone}\nbeside 6 x 3 MB to be truncated: {beside}")
    for response in responses:
        assert response.status_code == 400, response.text
        error = response.json()["error"]
        assert (error["param"], error["code"]) == ("prompt", "context_length_exceeded")


async def test_the_longest_texts_that_are_tokenized_take_turns(
    callers: Callers, alone: Seconds
) -> None:
    server = await callers.stack.one("server")
    before = taken(server).memory
    body = {"model": "demo", "prompt": LONG}

    async def tokenize() -> None:
        response = await callers.attacker.post("/tokenize", json=body)
        assert response.status_code == 200, response.text

    async def tokenize_short() -> None:
        response = await callers.harmed.post("/tokenize", json={"model": "demo", "prompt": "Hi"})
        assert response.status_code == 200, response.text

    attack = asyncio.gather(*(tokenize() for _ in range(12)))
    beside = await callers.chats(CHATS)
    for _ in range(CHATS):
        await tokenize_short()
    # They were served while most of the attack still waited for its turn.
    waits = not attack.done()
    await attack
    left = taken(server).memory - before
    print(f"alone: {alone}\nbeside 12 x 2 MiB to tokenize: {beside}\nleft: {left >> 20} MiB")
    assert waits
    assert left < 512 << 20


async def test_a_text_beyond_the_bound_is_refused_by_name(callers: Callers) -> None:
    response = await callers.attacker.post(
        "/tokenize", json={"model": "demo", "prompt": LONG + " "}
    )
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "prompt"
