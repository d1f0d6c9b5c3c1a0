"""A stream on which nothing comes has comments, which clients read without noticing."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import httpx
import openai
import pytest

from tests.rest.conftest import held
from tests.rest.programs import NODE, NODE_PROGRAMS
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.rest.conftest import Stack

# The first comment comes after 15 s.
pytestmark = pytest.mark.slow
LENGTH = 4000


class Noting(httpx.AsyncByteStream):
    """The body of an answer; tells when a comment is in it."""

    def __init__(self, body: httpx.AsyncByteStream, comment: asyncio.Event) -> None:
        self.body, self.comment = body, comment

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self.body:
            if b": ping\n\n" in part:
                self.comment.set()
            yield part

    async def aclose(self) -> None:
        await self.body.aclose()


async def test_openais_sdk_for_python_reads_on_after_a_comment(stack: Stack) -> None:
    begun, comment = asyncio.Event(), asyncio.Event()

    async def note(response: httpx.Response) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = Noting(response.stream, comment)

    async def read() -> str:
        text = ""
        async with (
            httpx.AsyncClient(event_hooks={"response": [note]}) as http,
            openai.AsyncOpenAI(base_url=f"{stack.url}/v3", api_key="k", http_client=http) as sdk,
        ):
            stream = await sdk.chat.completions.create(
                model="successor",
                messages=[{"role": "user", "content": "a"}],
                temperature=0,
                max_tokens=LENGTH,
                stream=True,
            )
            async for chunk in stream:
                text += chunk.choices[0].delta.content or ""
                if text:
                    begun.set()
        return text

    reading = asyncio.create_task(read())
    await begun.wait()
    # A request that the engine has not begun has no comments.
    with held(stack, "successor"):
        await asyncio.wait(
            [asyncio.create_task(comment.wait()), reading], return_when=asyncio.FIRST_COMPLETED
        )
        assert not reading.done()
    assert await reading == successor_text("a", LENGTH)


async def test_openais_sdk_for_node_reads_on_after_a_comment(stack: Stack) -> None:
    node = await asyncio.create_subprocess_exec(
        NODE, NODE_PROGRAMS / "silence.mjs", f"{stack.url}/v3", stdout=asyncio.subprocess.PIPE
    )
    assert node.stdout is not None
    assert await node.stdout.readline() == b"begun\n"
    with held(stack, "successor"):
        assert await node.stdout.readline() == b"comment\n"
    *_, text = (await node.stdout.read()).splitlines()

    assert await node.wait() == 0
    assert json.loads(text) == successor_text("a", LENGTH)
