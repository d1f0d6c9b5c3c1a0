"""Sets of tools and schemas that are all different, and the memory that processes take for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import openai

from tests.grammar_sets import schema, tools
from tests.soak import DEMO, taken

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.launch.stack import Stack

# For tests.launch.stack.running.
OPTIONS = DEMO
# Those that know grammars: of each kind there are as many as models, but for the server.
PROCESSES = ("server", "engine", "grammars")
CALLERS = 4
# On a busy machine a few take too long to compile, and are refused.
MAX_REFUSED = 0.05


async def memory(stack: Stack, count: int, every: int) -> AsyncIterator[dict[str, int]]:
    """Ask for `count` different ones; yield what each kind of process takes after each `every`.

    Yields:
        Bytes, as of tests.soak.Taken.
    """
    async with stack.sdk() as sdk:
        for begin in range(0, count, every):
            numbers = iter(range(begin, begin + every))
            refused = await asyncio.gather(*(_ask_all(sdk, numbers) for _ in range(CALLERS)))
            assert sum(refused) <= MAX_REFUSED * every, refused
            yield {
                kind: sum(taken(pid).memory for pid in stack.processes(kind)) for kind in PROCESSES
            }


async def _ask_all(sdk: openai.AsyncOpenAI, numbers: Iterator[int]) -> int:
    """Return how many were refused because they took too long to compile."""
    refused = 0
    for number in numbers:
        try:
            await _ask(sdk, number)
        except openai.BadRequestError as error:
            if "seconds to compile" not in error.message:
                raise
            refused += 1
    return refused


async def _ask(sdk: openai.AsyncOpenAI, number: int) -> None:
    form = {"name": "form", "strict": True, "schema": schema(number)}
    constraint: dict[str, Any] = (
        {"tools": tools(number)}
        if number % 2
        else {"response_format": {"type": "json_schema", "json_schema": form}}
    )
    await sdk.chat.completions.create(
        model="demo",
        messages=[{"role": "user", "content": "What is the weather in Oslo?"}],
        max_tokens=2,
        **constraint,
    )
