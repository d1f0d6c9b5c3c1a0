"""Grammars that take long to write hold up nobody else."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

import grpc.aio

from ovchat.v1 import format_pb2
from ovchat_server.app import Server
from ovchat_server.grammar.cache import GrammarCache
from tests.grpc.conftest import Client
from tests.grpc.requests import successor as ask_successor
from tests.grpc.requests import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from ovchat_server.settings import ModelSettings, Settings

# More than any pool of threads takes at once.
MANY = (os.cpu_count() or 1) + 8
ANY_JSON = format_pb2.ResponseFormat(json_object=format_pb2.JsonObjectFormat())


async def test_grammars_under_way_keep_no_chat_from_being_rendered(
    make_settings: Callable[..., Settings],
    successor: ModelSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on, begun, write = threading.Event(), asyncio.Event(), GrammarCache.grammar
    loop = asyncio.get_running_loop()

    def slow(self: GrammarCache, *asked: Any) -> str:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        return write(self, *asked)

    monkeypatch.setattr(GrammarCache, "grammar", slow)
    server = Server(make_settings(successor))
    async with server.running(), grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        client = Client(server, channel)
        await client.wait_for_health("SERVING")
        request = ask_successor("a", 1, response_format=ANY_JSON)
        calls = [client.chat.CreateChatCompletion(request) for _ in range(MANY)]
        waiting = [asyncio.ensure_future(call) for call in calls]
        try:
            await begun.wait()
            answer = await client.chat.CreateChatCompletion(ask_successor("a", 3), timeout=60)
        finally:
            go_on.set()
            await asyncio.gather(*waiting, return_exceptions=True)
    assert text_of(answer) == "bcd"
