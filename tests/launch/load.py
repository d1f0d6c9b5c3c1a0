"""Requests by the OpenAI SDK, one after the other by each of several callers."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import openai

from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.launch.stack import Stack

CALLERS = 8


@dataclass
class Load:
    """What became of them."""

    answered: int = 0
    failed: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    """Streams that had begun."""
    stopped: bool = False
    progress: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def more(self, count: int) -> None:
        """Wait for so many further answers."""
        target = self.answered + count
        async with self.progress:
            await self.progress.wait_for(lambda: self.answered >= target)


@contextlib.asynccontextmanager
async def load(stack: Stack, callers: int = CALLERS) -> AsyncIterator[Load]:
    """Streams and whole answers in turn, until the context is left."""
    state = Load()
    async with stack.sdk() as client:
        tasks = [asyncio.create_task(_call(client, state, seed)) for seed in range(callers)]
        try:
            await state.more(callers)
            yield state
        finally:
            state.stopped = True
            await asyncio.gather(*tasks)


async def _call(client: openai.AsyncOpenAI, state: Load, seed: int) -> None:
    number = seed
    while not state.stopped:
        number += 1
        text, length = chr(ord("a") + number % 20), 20 + (number * 37) % 200
        request: dict[str, Any] = {
            "model": "successor",
            "messages": [{"role": "user", "content": text}],
            "max_tokens": length,
            "temperature": 0,
        }
        answer = ""
        try:
            if number % 2:
                answer = await _streamed(client, request, state)
            else:
                whole = await client.chat.completions.create(**request)
                answer = whole.choices[0].message.content or ""
        except openai.APIError as error:
            state.failed.append(repr(error))
            continue
        if answer:
            assert answer == successor_text(text, length)
            async with state.progress:
                state.answered += 1
                state.progress.notify_all()


async def _streamed(client: openai.AsyncOpenAI, request: dict[str, Any], state: Load) -> str:
    """The text of a stream; "" where it was cut off."""
    text = ""
    stream = await client.chat.completions.create(**request, stream=True)
    try:
        async for chunk in stream:
            text += chunk.choices[0].delta.content or ""
    except openai.APIError as error:
        state.cut.append(repr(error))
        return ""
    return text
