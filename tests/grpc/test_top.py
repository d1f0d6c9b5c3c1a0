"""`ovchat top` as a person starts it, before a real server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from ovchat_server.app import Server
from tests.grpc.conftest import running
from tests.grpc.requests import successor
from tests.keys import api_keys
from tests.ports import unused_port
from tests.screen import Screen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.settings import ModelSettings, Settings
    from tests.grpc.conftest import Client

TOP = (sys.executable, "-m", "ovchat_server", "top")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm-256color"}


async def printed(*arguments: str, **environment: str) -> tuple[int | None, str, str]:
    """The exit code and what is written, none of it to a terminal."""
    process = await asyncio.create_subprocess_exec(
        *(*TOP, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**ENVIRONMENT, **environment},
    )
    output, errors = await process.communicate()
    return process.returncode, output.decode(), errors.decode()


def address(client: Client) -> str:
    return f"127.0.0.1:{client.server.port}"


@contextlib.asynccontextmanager
async def live(target: str) -> AsyncIterator[tuple[Screen, asyncio.subprocess.Process]]:
    """It runs in a terminal, which is as it was when it has ended."""
    screen = Screen()
    before = screen.modes()
    process = await asyncio.create_subprocess_exec(
        *(*TOP, target, "--interval", "0.1"),
        stdin=screen.slave,
        stdout=screen.slave,
        stderr=screen.slave,
        env=ENVIRONMENT,
    )
    try:
        yield screen, process
        assert await process.wait() == 0
        assert screen.modes() == before
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(screen.slave)
        await screen.ended.wait()
    # The other screen was left, and the cursor is shown.
    assert screen.text.index("\x1b[?1049h") < screen.text.rindex("\x1b[?1049l")
    assert screen.text.rindex("\x1b[?25l") < screen.text.rindex("\x1b[?25h")
    assert "Traceback" not in screen.text


@pytest.mark.parametrize("options", [["--once"], []])
async def test_without_a_terminal_it_is_plain_text_once(client: Client, options: list[str]) -> None:
    ended = asyncio.create_task(
        printed(address(client), *options, "--interval", "0.2", FORCE_COLOR="1")
    )
    # Whatever else it shows, there are tokens while it looks.
    while not ended.done():
        await client.chat.CreateChatCompletion(successor("a", 20))
    code, output, errors = await ended

    assert (code, errors) == (0, "")
    assert "\x1b" not in output
    assert re.match(rf"{address(client)}   ovchat \S+   up \d+:\d\d:\d\d   servers 1 ", output)
    rows = {line.split()[0]: line.split() for line in output.splitlines() if line}
    assert rows["demo"][1] == rows["successor"][1] == "ready"
    assert float(rows["successor"][5]) > 0
    assert "event loop lag p95: " in output


@pytest.mark.parametrize("end", ["q", "Q", signal.SIGINT, signal.SIGTERM])
async def test_in_a_terminal_it_is_live_until_someone_ends_it(
    client: Client, end: str | signal.Signals
) -> None:
    async with live(address(client)) as (screen, process):
        await screen.shows("successor")
        shown = len(screen.text)
        # It is drawn again.
        await screen.shows(f"(?s)^.{{{shown}}}.*successor")
        if isinstance(end, str):
            screen.types(end)
        else:
            process.send_signal(end)


async def test_what_was_heard_last_stays_while_the_server_is_away(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    port = unused_port()
    async with contextlib.AsyncExitStack() as stack:
        first = contextlib.AsyncExitStack()
        await first.enter_async_context(running(Server(make_settings(successor, grpc_port=port))))
        screen, _ = await stack.enter_async_context(live(f"127.0.0.1:{port}"))
        await screen.shows("successor")
        await first.aclose()
        await screen.shows("(?s)successor[^\x1b]*ready.*cannot be asked")
        away = len(screen.text)
        async with running(Server(make_settings(successor, grpc_port=port))):
            await screen.shows(f"(?s)^.{{{away}}}.*successor.*event loop lag(?!.*cannot)")
            screen.types("q")
            await stack.aclose()


async def test_where_nobody_answers_it_says_what_to_look_at() -> None:
    target = f"127.0.0.1:{unused_port()}"
    code, output, errors = await printed(target, "--once")
    assert (code, output) == (1, "")
    assert errors.startswith(f"Error: {target} cannot be asked: ")
    assert "Traceback" not in errors


async def test_a_key_is_taken_from_the_option_or_the_environment(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    async with running(Server(make_settings(successor, api_keys=api_keys("right")))) as client:
        target = (address(client), "--once", "--interval", "0.1")
        none, wrong, option, variable = await asyncio.gather(
            printed(*target, OVCHAT_API_KEY=""),
            printed(*target, "--api-key", "wrong"),
            printed(*target, "--api-key", "right"),
            printed(*target, OVCHAT_API_KEY="right"),
        )
    assert none[:2] == wrong[:2] == (1, "")
    assert "needs an API key: --api-key, or OVCHAT_API_KEY" in none[2]
    assert "does not take this API key: see --api-key" in wrong[2]
    assert option[0] == variable[0] == 0


@pytest.mark.parametrize("wrong", ["127.0.0.1", "http://127.0.0.1:9000", "127.0.0.1:port", ":9000"])
async def test_an_address_is_a_host_and_a_port(wrong: str) -> None:
    code, _, errors = await printed(wrong)
    assert code == 2
    assert f"ADDRESS must be HOST:PORT, such as 127.0.0.1:9000, got '{wrong}'" in errors
