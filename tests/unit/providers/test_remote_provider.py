"""A provider's answers beside everybody else's, and what is known of the provider by them."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.chat import ChatRequest, Message, Role
from ovchat_server.domain.completion import ChunkChoice, Delta, FinishReason, Usage
from ovchat_server.domain.errors import OverloadedError, UnavailableError
from ovchat_server.providers.remote_provider import RemoteProvider
from ovchat_server.serving.deadline import Deadline
from tests.unit.serving_tools import WORKERS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from ovchat_server.domain.errors import ApiError

CHUNKS = 1000
USAGE = Usage(1, CHUNKS)
REQUEST = ChatRequest("far/model", (Message(Role.USER, ("Hi",)),))


@dataclass
class Arrived:
    """An exchange whose answer is there already, or that fails."""

    failure: ApiError | None
    ignored: Sequence[str] = ()
    usage: Usage = USAGE
    complete: bool = True

    @contextlib.asynccontextmanager
    async def sent(self) -> AsyncIterator[None]:
        if self.failure is not None:
            raise self.failure
        yield

    async def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        for _ in range(CHUNKS):
            yield ChunkChoice(0, Delta(content="a"))
        yield ChunkChoice(0, Delta(), FinishReason.STOP)

    def fail(self, error: ApiError) -> None:
        raise NotImplementedError


@dataclass
class Client:
    """Of a provider that does what it is told to."""

    failure: ApiError | None = None
    name: str = "far"
    asked: asyncio.Queue[None] = field(default_factory=asyncio.Queue)

    def exchange(self, request: object, model: str) -> Arrived:  # noqa: ARG002
        return Arrived(self.failure)

    async def model_ids(self) -> Sequence[str]:
        self.asked.put_nowait(None)
        if self.failure is not None:
            raise self.failure
        return ["model"]

    async def close(self) -> None:
        pass


async def read(provider: RemoteProvider) -> str:
    answer = await provider.model("model", "model").answer(REQUEST, Deadline(None))
    return (await answer.whole()).choices[0].message.text


async def test_an_answer_that_has_arrived_keeps_nobody_waiting() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    assert await read(RemoteProvider(Client(), None, WORKERS)) == "a" * CHUNKS
    beside.cancel()
    assert turns >= CHUNKS


async def test_a_request_that_finds_it_away_or_back_is_heard() -> None:
    client = Client()
    provider = RemoteProvider(client, None, WORKERS)
    provider.start()
    await client.asked.get()

    client.failure = UnavailableError("away")
    with pytest.raises(UnavailableError):
        await read(provider)
    assert not provider.status.available
    # It is not waited for until the next time that would be due.
    await client.asked.get()

    client.failure = None
    await read(provider)
    assert provider.status.available
    await client.asked.get()
    await provider.close()


async def test_one_that_refuses_is_there() -> None:
    provider = RemoteProvider(Client(OverloadedError("full")), None, WORKERS)
    with pytest.raises(OverloadedError):
        await read(provider)
    assert provider.status.available
