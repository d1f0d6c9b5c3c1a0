"""Shows figures once, or again and again until someone has seen enough."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
import tty
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.live import Live

from ovchat_server.top.client import UnreachableError
from ovchat_server.top.figures import figures
from ovchat_server.top.snapshots import heard
from ovchat_server.top.view import WIDE, view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ovchat_server.top.client import MetricsClient
    from ovchat_server.top.snapshots import Window

_INPUT: Final = 0


async def run(client: MetricsClient, interval: float, *, once: bool) -> None:
    """Show figures: live in a terminal, else once.

    Args:
        client: Asks for them.
        interval: Seconds between two questions, over which rates are taken.
        once: Show them once in a terminal, too.

    Raises:
        TopError: There are none.
    """
    terminal = sys.stdout.isatty()
    # Of a file's width nothing is known.
    console = Console(force_terminal=terminal, width=None if terminal else WIDE, highlight=False)
    async with client:
        if once or not terminal or console.is_dumb_terminal:
            windows = heard({}, await client.snapshots())
            await asyncio.sleep(interval)
            windows = heard(windows, await client.snapshots())
            console.print(view(client.address, figures(windows.values())))
        else:
            await _watch(client, interval, console)


async def _watch(client: MetricsClient, interval: float, console: Console) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    with _keys(ended.set), Live(console=console, screen=True, auto_refresh=False) as live:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        loop.add_signal_handler(signal.SIGWINCH, live.refresh)
        waiting = asyncio.create_task(ended.wait())
        showing = asyncio.create_task(_show(client, interval, live))
        await asyncio.wait([waiting, showing], return_when=asyncio.FIRST_COMPLETED)
        for task in (waiting, showing):
            task.cancel()
        await asyncio.wait([waiting, showing])
    if not showing.cancelled():
        showing.result()


async def _show(client: MetricsClient, interval: float, live: Live) -> None:
    windows: Mapping[int, Window] = {}
    while True:
        trouble = ""
        try:
            windows = heard(windows, await client.snapshots())
        except UnreachableError as error:
            trouble = str(error)
        live.update(view(client.address, figures(windows.values()), trouble), refresh=True)
        await asyncio.sleep(interval)


@contextlib.contextmanager
def _keys(end: Callable[[], None]) -> Iterator[None]:
    """Call `end` when q is pressed; keys are not shown meanwhile."""
    if not os.isatty(_INPUT):
        yield
        return

    def read() -> None:
        if b"q" in os.read(_INPUT, 1024).lower():
            end()

    before = termios.tcgetattr(_INPUT)
    loop = asyncio.get_running_loop()
    tty.setcbreak(_INPUT)
    loop.add_reader(_INPUT, read)
    try:
        yield
    finally:
        loop.remove_reader(_INPUT)
        termios.tcsetattr(_INPUT, termios.TCSADRAIN, before)
