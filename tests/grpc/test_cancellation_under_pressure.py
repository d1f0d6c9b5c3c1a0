"""Calls given up while others wait for a place: nothing is left of them, nobody else notices."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.grpc.engines import load_of, until, until_idle, until_idle_in_time
from tests.grpc.requests import ask, joined, successor, text_of
from tests.grpc.test_deadlines import serving
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import grpc.aio

    from ovchat.v1 import chat_pb2
    from ovchat_server.settings import ModelSettings, Settings
    from tests.grpc.conftest import Client

# Of the 222 that the small pool holds.
LONG = 200


@pytest.fixture(scope="module")
async def narrow(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> AsyncIterator[Client]:
    """A server with room for little more than one long answer at a time."""
    settings = make_settings(msgspec.structs.replace(successor, kv_blocks=8))
    async with serving(settings) as client:
        yield client


async def read(call: grpc.aio.UnaryStreamCall) -> str:  # type: ignore[type-arg]
    chunks: list[chat_pb2.ChatCompletionChunk] = [chunk async for chunk in call]
    return joined(chunks)


@pytest.mark.slow
async def test_cancelled_while_queued(narrow: Client) -> None:
    healthy = [
        asyncio.ensure_future(read(narrow.chat.StreamChatCompletion(successor(text, LONG))))
        for text in "AB"
    ]
    doomed = [narrow.chat.StreamChatCompletion(successor("a", LONG)) for _ in range(40)]
    await until(lambda: load_of(narrow, "successor").waiting_requests >= 10)

    for call in doomed:
        call.cancel()

    for text, stream in zip("AB", healthy, strict=True):
        assert await stream == successor_text(text, LONG)
    await until_idle(narrow, "successor")


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [1, 3, 10, 40])
async def test_cancelled_in_the_middle_of_any_choice(narrow: Client, chunks: int) -> None:
    healthy = asyncio.ensure_future(read(narrow.chat.StreamChatCompletion(successor("A", LONG))))
    doomed = [narrow.chat.StreamChatCompletion(successor("a", LONG, n=3)) for _ in range(3)]
    for call in doomed:
        for _ in range(chunks):
            await call.read()

        call.cancel()

    assert await healthy == successor_text("A", LONG)
    await until_idle(narrow, "successor")


@pytest.fixture(scope="module")
async def piecemeal(
    make_settings: Callable[..., Settings], demo: ModelSettings
) -> AsyncIterator[Client]:
    """A server that reads long prompts in many steps."""
    async with serving(
        make_settings(msgspec.structs.replace(demo, max_num_batched_tokens=128))
    ) as client:
        yield client


@pytest.mark.speed
async def test_cancelled_while_the_prompt_is_read(piecemeal: Client) -> None:
    client = piecemeal
    question = ask("What is 17 + 25?", max_tokens=60, temperature=0)
    undisturbed = text_of(await client.chat.CreateChatCompletion(question))
    words = "What is the capital of Spain? Add 5 and 9. " * 100
    call = client.chat.StreamChatCompletion(ask(words, max_tokens=50))
    first_chunk = asyncio.ensure_future(call.read())
    # The engine tells after every step: by now it has read the first part.
    while (await client.model("demo")).load.running_requests == 0:
        assert not first_chunk.done()
    assert not first_chunk.done()
    healthy = client.chat.CreateChatCompletion(question)

    call.cancel()

    assert text_of(await healthy) == undisturbed
    await until_idle_in_time(client, "demo")
    with pytest.raises(asyncio.CancelledError):
        await first_chunk
