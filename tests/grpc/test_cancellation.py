"""Calls given up: the engine goes on with nothing of them, long before it would have been done.

Calls are given up while the engine is held, so that it is seen to end them for no other reason.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from tests.grpc.engines import (
    given_up,
    held,
    until_idle,
    until_idle_in_time,
    until_running,
    until_under_way,
)
from tests.grpc.requests import ask, go_on, successor

if TYPE_CHECKING:
    from tests.grpc.conftest import Client

# What one stream would say that nobody gave up.
LONG = 4000
# The same for several that run together: no room is kept for all of what they may say.
UNLIMITED = None


async def test_a_cancelled_stream_frees_the_engine(client: Client) -> None:
    async with given_up(client, "successor", LONG):
        call = client.chat.StreamChatCompletion(successor("a", LONG))
        await call.read()

        with held(client, "successor"):
            call.cancel()
            await until_under_way(client, "successor", 0)


async def test_a_cancelled_unary_call_frees_the_engine(client: Client) -> None:
    async with given_up(client, "successor", LONG):
        call = client.chat.CreateChatCompletion(successor("a", LONG))
        await until_running(client, "successor", 1)

        with held(client, "successor"):
            call.cancel()
            await until_under_way(client, "successor", 0)


@pytest.mark.parametrize("fields", [{"n": 8}, {"best_of": 4, "n": 2}], ids=["samples", "search"])
async def test_a_cancelled_call_frees_all_its_choices(
    client: Client, fields: dict[str, int]
) -> None:
    async with given_up(client, "successor", LONG):
        call = client.chat.StreamChatCompletion(successor("a", UNLIMITED, **fields))
        await until_running(client, "successor", 8 if fields["n"] == 8 else 1)

        with held(client, "successor"):
            call.cancel()
            await until_under_way(client, "successor", 0)


async def test_a_cancelled_text_completion_frees_all_its_prompts(client: Client) -> None:
    # One that was left would say as much by itself.
    length = 2000
    async with given_up(client, "successor", length):
        call = client.texts.StreamCompletion(go_on("a", "b", "c", n=2, max_tokens=length))
        await until_running(client, "successor", 6)

        with held(client, "successor"):
            call.cancel()
            await until_under_way(client, "successor", 0)


async def test_a_closed_connection_frees_the_engine(client: Client) -> None:
    async with given_up(client, "successor", LONG):
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{client.server.port}")
        other = type(client)(client.server, channel)
        call = other.chat.StreamChatCompletion(successor("a", LONG))
        await call.read()

        with held(client, "successor"):
            await channel.close()
            await until_under_way(client, "successor", 0)


async def test_a_deadline_ends_the_call_and_frees_the_engine(client: Client) -> None:
    async with given_up(client, "successor", LONG):
        with held(client, "successor"):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await client.chat.CreateChatCompletion(successor("a", LONG), timeout=0.2)
            await until_under_way(client, "successor", 0)

    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_cancelled_call_leaves_the_others_alone(client: Client) -> None:
    async with given_up(client, "successor", 1000 + LONG):
        doomed = [client.chat.StreamChatCompletion(successor("a", UNLIMITED)) for _ in range(8)]
        healthy = client.chat.CreateChatCompletion(successor("A", 1000))
        await until_running(client, "successor", 9)

        with held(client, "successor"):
            for call in doomed:
                call.cancel()
            await until_under_way(client, "successor", 1)

        assert (await healthy).usage.completion_tokens == 1000


async def test_health_and_models_answer_while_a_long_prompt_is_read(client: Client) -> None:
    words = "What is the capital of France? " * 200
    with held(client, "demo"):
        call = client.chat.StreamChatCompletion(ask(words, max_tokens=1, temperature=0))
        first_chunk = asyncio.ensure_future(call.read())
        await until_under_way(client, "demo", 1)

        await client.wait_for_health("SERVING")
        assert (await client.model("demo")).id == "demo"
        assert not first_chunk.done()

    assert (await first_chunk).choices


@pytest.mark.speed
@pytest.mark.parametrize("fields", [{}, {"n": 8}, {"best_of": 4, "n": 2}], ids=str)
async def test_what_is_given_up_is_free_within_a_second(
    client: Client, fields: dict[str, int]
) -> None:
    await until_idle(client, "successor")
    call = client.chat.StreamChatCompletion(successor("a", UNLIMITED, **fields))
    await until_running(client, "successor", 1)

    call.cancel()

    await until_idle_in_time(client, "successor")
