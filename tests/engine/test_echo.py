"""A kind of work that is not generation, through the same supervisor and process."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from ovchat_server.backoff import Backoff
from ovchat_server.domain.errors import InternalError, OverloadedError, UnavailableError
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.messages import Capabilities
from ovchat_server.engine.contract.spec import EngineOptions
from tests.echo import DEADLY, EchoEngine, EchoSpec
from tests.engine.conftest import loaded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LONG = "what comes back " * 2000


async def at_once(_seconds: float) -> None:
    """Sleep no time."""


async def never(_seconds: float) -> None:
    """Sleep for ever."""
    await asyncio.Event().wait()


SPEC = EchoSpec(name="echo", max_characters=9)


class Watched:
    """An echo engine whose changes a test can wait for."""

    def __init__(self, backoff: Backoff, spec: EchoSpec = SPEC) -> None:
        self.changed = asyncio.Event()
        self.engine = EchoEngine(spec, self.changed.set, backoff)

    async def until(self, state: ModelState) -> None:
        while self.engine.supervisor.status.state is not state:
            self.changed.clear()
            await self.changed.wait()

    def kill(self) -> None:
        connection = self.engine.supervisor._connection
        assert connection is not None
        connection.kill()

    async def echo(self, text: str) -> str:
        return "".join([character async for character in self.engine.echo(text)])


@contextlib.asynccontextmanager
async def running(spec: EchoSpec = SPEC) -> AsyncIterator[Watched]:
    async with loaded(Watched(Backoff(at_once), spec)) as watched:
        yield watched


async def test_it_is_started_and_asked() -> None:
    async with running() as watched:
        assert await asyncio.gather(watched.echo("one"), watched.echo("two")) == ["one", "two"]


async def test_what_it_can_do_is_stated_by_itself() -> None:
    async with running() as watched:
        ready = watched.engine.supervisor.ready
        assert ready is not None
        assert ready.limits.max_characters == 9
        assert watched.engine.supervisor.status.capabilities == Capabilities(sees_logits=True)


async def test_who_stops_reading_cancels() -> None:
    async with running() as watched:
        characters = watched.engine.echo(LONG)
        assert [await anext(characters) for _ in range(4)] == ["w", "h", "a", "t"]

        await characters.aclose()  # type: ignore[attr-defined]

        assert await watched.echo("next") == "next"
        load = watched.engine.supervisor.status.load
        assert load is not None
        assert load.running_requests == 0


async def test_a_death_is_recovered_from() -> None:
    async with running() as watched:
        characters = watched.engine.echo(LONG)
        begun = await anext(characters)

        watched.kill()

        assert begun + "".join([character async for character in characters]) == LONG
        assert watched.engine.supervisor.status.state is ModelState.READY


async def test_what_its_process_dies_of_fails_and_the_others_go_on() -> None:
    async with running() as watched:
        deadly = asyncio.create_task(watched.echo("a" + DEADLY))
        other = asyncio.create_task(watched.echo(LONG))
        with pytest.raises(InternalError, match="crashed several times"):
            await deadly
        assert await other == LONG


async def test_more_than_may_wait_are_refused() -> None:
    options = EngineOptions(max_queue=1)
    spec = EchoSpec(name="echo", max_characters=9, options=options)
    async with running(spec) as watched:
        first = asyncio.create_task(watched.echo(LONG))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await watched.echo("too many")
        assert await first == LONG


async def test_what_cannot_be_loaded_says_why() -> None:
    spec = EchoSpec(name="echo", max_characters=9, worker="tests.echo:nothing")
    watched = Watched(Backoff(never), spec)
    watched.engine.start()
    await watched.until(ModelState.UNAVAILABLE)
    assert "its engine failed: AttributeError: " in watched.engine.supervisor.status.reason
    with pytest.raises(UnavailableError):
        await watched.echo("text")
    await watched.engine.close()
