"""Grammars that take long to write hold up nobody else."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

from ovchat.v1 import format_pb2
from ovchat_server.grammar.cache import GrammarCache
from tests.grpc.requests import successor as ask_successor
from tests.grpc.requests import text_of

if TYPE_CHECKING:
    import pytest

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
