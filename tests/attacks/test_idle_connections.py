"""1,200 connections that say nothing, where a process may have 1,024 files open."""

from __future__ import annotations

import contextlib
import resource
import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.attacks.probing import Figures, chat, figures, status
from tests.launch.stack import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

CONNECTIONS, TIMES = 1200, 50
SOFT = 1024
HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]


@contextlib.contextmanager
def held(port: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for _ in range(CONNECTIONS):
            one = stack.enter_context(socket.socket())
            one.settimeout(5)
            # Whoever cannot take it does not answer, or hangs up.
            with contextlib.suppress(OSError):
                one.connect(("127.0.0.1", port))
        yield


async def fresh(url: str) -> Figures:
    """Chats, each on a connection of its own."""

    async def ask() -> str:
        async with httpx.AsyncClient(base_url=url, timeout=20) as http:
            return await status(http, "/v3/chat/completions", chat())

    return await figures(ask, TIMES)


@pytest.mark.parametrize("port", ["rest_port", "grpc_port"])
@pytest.mark.parametrize("hard", [SOFT, HARD])
async def test_rest_calls_are_answered_beside_them(tmp_path: Path, port: str, hard: int) -> None:
    async with (
        running(tmp_path, open_files=(SOFT, hard)) as stack,
        httpx.AsyncClient(base_url=stack.url, timeout=20) as http,
    ):

        async def kept() -> Figures:
            return await figures(lambda: status(http, "/v3/chat/completions", chat()), TIMES)

        alone = [await fresh(stack.url), await kept()]
        with held(getattr(stack, port)):
            beside = [await fresh(stack.url), await kept()]
        after = await fresh(stack.url)
    for what, one, other in zip(("new", "kept"), alone, beside, strict=True):
        print(f"{port}, at most {hard}, {what} connection: alone {one}; beside them {other}")
    new, old = beside
    assert old.outcomes == after.outcomes == {"200": TIMES}
    # Where the connections themselves are too many, a new one is closed without an answer.
    full = port == "rest_port" and hard == SOFT
    closed = {"ReadError", "RemoteProtocolError"} if full else set()
    assert set(new.outcomes) <= {"200", *closed}
