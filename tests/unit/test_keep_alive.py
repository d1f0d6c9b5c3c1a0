"""A stream on which nothing comes has comments, and goes on as any other."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from ovchat_server.rest.keep_alive import Moment, with_moments

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

# Seconds: whatever they are, nothing may come by itself, or at once.
NEVER, AT_ONCE = 1e9, 1e-6
ADMISSION, SILENCE = Moment.ADMISSION, Moment.SILENCE


async def at_once() -> None:
    """Admit the stream."""


async def never() -> None:
    await asyncio.Event().wait()


class Source:
    """A generator that yields when it is told to."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[int | Exception | None] = asyncio.Queue()
        self.yielded: list[int] = []
        self.closed = asyncio.Event()

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            while (item := await self.queue.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                self.yielded.append(item)
                yield item
        finally:
            self.closed.set()


async def test_items_pass_in_their_order() -> None:
    source = Source()
    for item in (1, 2, 3, None):
        source.queue.put_nowait(item)
    assert [item async for item in with_moments(source.items(), never, NEVER)] == [1, 2, 3]


async def test_admission_is_noted_and_then_each_silence_until_something_comes() -> None:
    source = Source()
    stream = with_moments(source.items(), at_once, AT_ONCE)
    assert [await anext(stream) for _ in range(3)] == [ADMISSION, SILENCE, SILENCE]
    source.queue.put_nowait(1)
    seen = [await anext(stream)]
    while isinstance(seen[-1], Moment):
        seen.append(await anext(stream))
    assert seen[-1] == 1
    assert await anext(stream) is SILENCE
    source.queue.put_nowait(None)
    assert not [item async for item in stream if not isinstance(item, Moment)]


async def test_nothing_is_taken_that_the_reader_has_not_asked_for() -> None:
    source = Source()
    stream = with_moments(source.items(), at_once, AT_ONCE)
    source.queue.put_nowait(1)
    source.queue.put_nowait(2)
    while isinstance(await anext(stream), Moment):
        pass
    # The reader holds the first; whatever the loop does meanwhile, the second stays.
    for _ in range(100):
        await asyncio.sleep(0)
    assert source.yielded == [1]
    await stream.aclose()


async def test_what_the_generator_raises_is_raised() -> None:
    source = Source()
    source.queue.put_nowait(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        await anext(with_moments(source.items(), never, NEVER))


@pytest.mark.parametrize("begun", [False, True])
async def test_a_stream_that_is_closed_closes_the_generator(*, begun: bool) -> None:
    source = Source()
    stream = with_moments(source.items(), at_once, AT_ONCE)
    if begun:
        source.queue.put_nowait(1)
        while isinstance(await anext(stream), Moment):
            pass
    else:
        await anext(stream)
    await stream.aclose()
    assert source.closed.is_set()


async def test_a_reader_that_is_cancelled_closes_the_generator() -> None:
    source = Source()

    async def read() -> None:
        async with contextlib.aclosing(with_moments(source.items(), at_once, NEVER)) as stream:
            async for _ in stream:
                began.set()

    began = asyncio.Event()
    reading = asyncio.create_task(read())
    source.queue.put_nowait(1)
    await began.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert source.closed.is_set()


async def test_silence_is_not_noted_before_the_admission() -> None:
    source = Source()
    stream = with_moments(source.items(), never, AT_ONCE)
    first = asyncio.create_task(anext(stream))
    for _ in range(100):
        await asyncio.sleep(0)
    source.queue.put_nowait(1)
    assert await first == 1
    await stream.aclose()
