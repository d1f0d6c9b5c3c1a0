from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from tests.grpc.requests import ask, go_on, successor
from tests.grpc.test_chat import until_idle

if TYPE_CHECKING:
    from tests.grpc.conftest import Client

# Within a second nothing may be held any more.
pytestmark = pytest.mark.speed

# Long enough to be running still whenever a test looks.
LONG = 4000
# The same for several that run together: no room is kept for all of what they may say.
UNLIMITED = None


async def until_running(client: Client, count: int) -> None:
    while (await client.model("successor")).load.running_requests < count:
        pass


async def test_a_cancelled_stream_frees_the_engine(client: Client) -> None:
    call = client.chat.StreamChatCompletion(successor("a", LONG))
    await call.read()

    call.cancel()

    await until_idle(client, "successor")


async def test_a_cancelled_unary_call_frees_the_engine(client: Client) -> None:
    call = client.chat.CreateChatCompletion(successor("a", LONG))
    await until_running(client, 1)

    call.cancel()

    await until_idle(client, "successor")


@pytest.mark.parametrize("fields", [{"n": 8}, {"best_of": 4, "n": 2}], ids=["samples", "search"])
async def test_a_cancelled_call_frees_all_its_choices(
    client: Client, fields: dict[str, int]
) -> None:
    request = successor("a", UNLIMITED, **fields)
    call = client.chat.StreamChatCompletion(request)
    await until_running(client, 8 if fields["n"] == 8 else 1)

    call.cancel()

    await until_idle(client, "successor")


async def test_a_cancelled_text_completion_frees_all_its_prompts(client: Client) -> None:
    call = client.texts.StreamCompletion(go_on("a", "b", "c", n=2, max_tokens=1000))
    await until_running(client, 6)

    call.cancel()

    await until_idle(client, "successor")


async def test_a_closed_connection_frees_the_engine(client: Client) -> None:
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{client.server.port}")
    other = type(client)(client.server, channel)
    call = other.chat.StreamChatCompletion(successor("a", LONG))
    await call.read()

    await channel.close()

    await until_idle(client, "successor")


async def test_a_deadline_ends_the_call_and_frees_the_engine(client: Client) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.chat.CreateChatCompletion(successor("a", LONG), timeout=0.2)

    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await until_idle(client, "successor")


async def test_a_cancelled_call_leaves_the_others_alone(client: Client) -> None:
    doomed = [client.chat.StreamChatCompletion(successor("a", UNLIMITED)) for _ in range(8)]
    healthy = client.chat.CreateChatCompletion(successor("A", 1000))
    await until_running(client, 9)

    for call in doomed:
        call.cancel()

    assert (await healthy).usage.completion_tokens == 1000
    await until_idle(client, "successor")


async def test_health_and_models_answer_while_a_long_prompt_is_read(client: Client) -> None:
    words = "What is the capital of France? " * 200
    call = client.chat.StreamChatCompletion(ask(words, max_tokens=1, temperature=0))
    first_chunk = asyncio.ensure_future(call.read())
    answered = 0
    # The engine has the prompt now; until its first token it is inside one step.
    while (await client.model("demo")).load.running_requests == 0 and not first_chunk.done():
        await client.wait_for_health("SERVING")
        answered += 1

    chunk = await first_chunk
    assert chunk.choices
    assert answered > 1
