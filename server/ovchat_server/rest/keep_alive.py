"""Keeps silent streams alive: proxies close connections on which nothing is sent."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

Item = TypeVar("Item")


async def noting_silence(
    items: AsyncGenerator[Item, None], seconds: float, counts: Callable[[], bool]
) -> AsyncGenerator[Item | None, None]:
    """Yield the items of a generator, and None after every `seconds` without one.

    One task and one timer for the whole stream: a task for each token would take a fifth of all
    the time that the server spends on it.

    Args:
        items: The generator.
        seconds: The time.
        counts: Returns whether silence counts at the moment.

    Raises:
        Exception: What the generator raises.
    """
    loop = asyncio.get_running_loop()
    changed, taken = asyncio.Event(), asyncio.Event()
    waiting: list[Item] = []
    since = loop.time()
    timer: asyncio.TimerHandle

    async def read() -> None:
        async with contextlib.aclosing(items):
            async for item in items:
                waiting.append(item)
                changed.set()
                # Do not read ahead: tokens that a slow reader has not taken are merged.
                await taken.wait()
                taken.clear()

    def look() -> None:
        nonlocal since, timer
        if loop.time() - since >= seconds:
            since = loop.time()
            if counts():
                changed.set()
        timer = loop.call_at(since + seconds, look)

    reader = asyncio.create_task(read())
    reader.add_done_callback(lambda _: changed.set())
    timer = loop.call_at(since + seconds, look)
    try:
        while True:
            await changed.wait()
            changed.clear()
            if waiting:
                yield waiting.pop()
                since = loop.time()
                taken.set()
            elif reader.done():
                reader.result()
                return
            else:
                yield None
    finally:
        timer.cancel()
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
