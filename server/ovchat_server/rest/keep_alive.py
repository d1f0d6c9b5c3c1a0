"""Keeps silent streams alive: proxies close connections on which nothing is sent."""

from __future__ import annotations

import asyncio
import contextlib
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

Item = TypeVar("Item")


class Moment(Enum):
    """What happens to a stream besides its items.

    Attributes:
        ADMISSION: The engine works on it from now on.
        SILENCE: Nothing has come for a while, although the engine works on it.
    """

    ADMISSION = auto()
    SILENCE = auto()


async def with_moments(  # noqa: C901  one loop, whose parts share its state
    items: AsyncGenerator[Item, None], admission: Callable[[], Awaitable[None]], seconds: float
) -> AsyncGenerator[Item | Moment, None]:
    """Yield the items of a generator, and what happens to the stream between them.

    Two tasks and one timer for the whole stream: a task for each token would take a fifth of all
    the time that the server spends on it.

    Args:
        items: The generator.
        admission: Waits for it. Until then no silence is noted.
        seconds: The time without an item after which there is silence, and so on.

    Raises:
        Exception: What the generator raises.
    """
    loop = asyncio.get_running_loop()
    changed, taken = asyncio.Event(), asyncio.Event()
    waiting: list[Item] = []
    # The last one that was not yielded yet: it says that those before it were, too.
    latest: list[Moment] = []
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

    def note(moment: Moment) -> None:
        latest[:] = [moment]
        changed.set()

    def look() -> None:
        nonlocal since, timer
        if loop.time() - since >= seconds:
            since = loop.time()
            if admitting.done():
                note(Moment.SILENCE)
        timer = loop.call_at(since + seconds, look)

    admitting = asyncio.ensure_future(admission())
    admitting.add_done_callback(lambda _: note(Moment.ADMISSION))
    reader = asyncio.create_task(read())
    reader.add_done_callback(lambda _: changed.set())
    timer = loop.call_at(since + seconds, look)
    try:
        while True:
            await changed.wait()
            changed.clear()
            if waiting:
                # An item says as much as a moment.
                latest.clear()
                yield waiting.pop()
                since = loop.time()
                taken.set()
            elif reader.done():
                reader.result()
                return
            elif latest:
                yield latest.pop()
    finally:
        timer.cancel()
        admitting.cancel()
        reader.cancel()
        await asyncio.gather(admitting, reader, return_exceptions=True)
