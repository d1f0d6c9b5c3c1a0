"""What hangs is replaced: it does not end by itself."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from ovchat_server.backoff import Backoff
from ovchat_server.launch import liveness
from ovchat_server.launch.child import Program
from ovchat_server.launch.liveness import silent
from ovchat_server.launch.service import Checks, Service
from tests.launch.stack import gone, running, send

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SLEEPER = Program([sys.executable, "-IS", "-c", "import time; time.sleep(1000)"])


async def asked(answers: Sequence[bool], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Which of the answers it takes to find a child silent, by the seconds that each was given."""
    given: list[float] = []
    following = iter(answers)

    async def ask(seconds: float) -> bool:
        given.append(seconds)
        return next(following)

    async def at_once(_seconds: float) -> None:
        """As if the time had passed."""

    monkeypatch.setattr(liveness.asyncio, "sleep", at_once)
    await silent(ask, 15)
    return given


async def test_silence_is_five_missing_answers_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    # One that came in between begins the count anew: this process may have been the slow one.
    answers = [True, False, False, False, False, True, *[False] * 5]
    assert await asked(answers, monkeypatch) == [3] * len(answers)


async def serves() -> None:
    """At once."""


async def test_what_hangs_is_killed_and_started_again(caplog: pytest.LogCaptureFixture) -> None:
    again, times = asyncio.Event(), iter(range(2))

    async def hangs() -> None:
        if next(times):
            again.set()
            await liveness.never()

    async def at_once(_seconds: float) -> None:
        """No back-off."""

    service = Service("it", SLEEPER, Checks(serves, hangs), Backoff(at_once))
    service.start()
    await again.wait()
    await service.close()
    assert "it answers nothing any more (--liveness-timeout): killing it" in caplog.text
    assert "it was ended by signal SIGKILL; starting it again" in caplog.text


@pytest.fixture
def stopped() -> Iterator[list[int]]:
    """Processes that a test has stopped: they go on at its end."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        send(pid, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["server", "envoy"])
async def test_a_stopped_process_is_replaced(tmp_path: Path, kind: str, stopped: list[int]) -> None:
    async with running(tmp_path, "--liveness-timeout=3") as stack:
        pid = await stack.one(kind)
        stopped.append(pid)
        send(pid, signal.SIGSTOP)
        await gone(pid)
        await stack.one(kind, other_than=pid)
        await stack.answers()


@pytest.mark.slow
async def test_a_pause_of_the_launcher_ends_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, "--liveness-timeout=1") as stack:
        before = stack.all_processes()
        # Many times as long as the timeout.
        send(stack.process.pid, signal.SIGSTOP)
        await asyncio.sleep(5)
        send(stack.process.pid, signal.SIGCONT)
        await stack.answers()
        await asyncio.sleep(2)
        assert stack.all_processes() == before
