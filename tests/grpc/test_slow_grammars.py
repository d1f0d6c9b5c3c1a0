"""Grammars that take long to write, or to follow, hold up nobody else."""

from __future__ import annotations

import asyncio
import os
import threading
from itertools import count
from typing import TYPE_CHECKING, Any

import grpc.aio
import msgspec
import pytest

from ovchat.v1 import chat_pb2, format_pb2
from ovchat_server.app import Server
from ovchat_server.grammar.cache import GrammarCache
from tests.grammars import ambiguous
from tests.grpc.conftest import running
from tests.grpc.requests import ask, go_on, joined, text_of
from tests.grpc.requests import successor as ask_successor
from tests.keys import api_keys

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ovchat_server.settings import ModelSettings, Settings
    from tests.grpc.conftest import Client

# More than any pool of threads takes at once.
MANY = (os.cpu_count() or 1) + 8
ANY_JSON = format_pb2.ResponseFormat(json_object=format_pb2.JsonObjectFormat())


async def test_grammars_under_way_keep_no_chat_from_being_rendered(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, begun, write = threading.Event(), asyncio.Event(), GrammarCache.grammar
    loop = asyncio.get_running_loop()

    def slow(self: GrammarCache, *asked: Any) -> str:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        return write(self, *asked)

    monkeypatch.setattr(GrammarCache, "grammar", slow)
    request = ask_successor("a", 1, response_format=ANY_JSON)
    calls = [client.chat.CreateChatCompletion(request) for _ in range(MANY)]
    waiting = [asyncio.ensure_future(call) for call in calls]
    try:
        await begun.wait()
        answer = await client.chat.CreateChatCompletion(ask_successor("a", 3))
    finally:
        go_on.set()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert text_of(answer) == "bcd"


MINE, THEIRS = ((("x-api-key", name),) for name in ("k-mine", "k-theirs"))
NAMES = count()


def slow_to_follow() -> dict[str, Any]:
    """What asks for a grammar that nobody has asked for."""
    form = format_pb2.StructuredOutputs(grammar=ambiguous(f"s{next(NAMES)}"))
    return {"structured_outputs": form, "logit_bias": {64: 100}, "max_tokens": 900}


@pytest.fixture(scope="module")
async def impatient(
    make_settings: Callable[..., Settings], demo: ModelSettings
) -> AsyncIterator[Client]:
    """A server whose steps may hardly take any time for grammars."""
    model = msgspec.structs.replace(demo, max_mask_seconds=0.01)
    keys = api_keys("k-mine", "k-theirs")
    async with running(Server(make_settings(model, api_keys=keys))) as client:
        yield client


@pytest.fixture
async def others(impatient: Client) -> AsyncIterator[None]:
    """Another one's long answers, one after the other, each of which comes whole."""
    ended = asyncio.Event()

    async def stream() -> None:
        request = ask("Hello", max_tokens=300, ignore_eos=True)
        while not ended.is_set():
            chunks = [
                chunk
                async for chunk in impatient.chat.StreamChatCompletion(request, metadata=THEIRS)
            ]
            assert chunks[-1].choices[0].finish_reason == chat_pb2.FINISH_REASON_LENGTH

    task = asyncio.create_task(stream())
    yield
    ended.set()
    await task


async def whole(client: Client, **fields: Any) -> None:
    await client.chat.CreateChatCompletion(ask("Hello", **fields), metadata=MINE)


async def streamed(client: Client, **fields: Any) -> None:
    chunks = []
    try:
        async for chunk in client.chat.StreamChatCompletion(ask("Hello", **fields), metadata=MINE):
            chunks.append(chunk)  # noqa: PERF401  what came before the error
    finally:
        assert set(joined(chunks)) <= {"a"}


async def text(client: Client, **fields: Any) -> None:
    request = go_on("a", model="demo", **fields)
    await client.texts.CreateCompletion(request, metadata=MINE)


@pytest.mark.parametrize("answer", [whole, streamed, text])
async def test_one_that_is_slow_to_follow_ends_beside_others(
    impatient: Client,
    others: None,  # noqa: ARG001
    answer: Callable[..., Awaitable[None]],
) -> None:
    fields = slow_to_follow()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answer(impatient, **fields)
    error = caught.value
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error.details().startswith("structured_outputs.grammar cannot be enforced: it takes")


async def test_who_asks_for_it_again_is_refused_at_once(
    impatient: Client,
    others: None,  # noqa: ARG001
) -> None:
    fields = slow_to_follow()
    for most in (900, 1):
        with pytest.raises(grpc.aio.AioRpcError, match="cannot be enforced: it takes"):
            await whole(impatient, **{**fields, "max_tokens": most})
    # Others have not asked for it.
    request = ask("Hello", **{**fields, "max_tokens": 1})
    assert text_of(await impatient.chat.CreateChatCompletion(request, metadata=THEIRS)) == "a"
