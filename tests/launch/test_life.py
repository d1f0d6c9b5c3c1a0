"""Every process of `ovchat up` and every signal: service comes back, and at the end all is gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.launch.load import load
from tests.launch.stack import CHILDREN, gone, running, send, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.launch.stack import Stack

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGKILL]
every_signal = pytest.mark.parametrize("number", SIGNALS)
# Ctrl-C in a terminal, and a service manager, reach these too: their server ends them.
DEAF = {(kind, number) for kind in ("engine", "grammars") for number in SIGNALS[:2]}


def others_slow(name: str, first: Any, *others: Any) -> pytest.MarkDecorator:
    """Values of a parameter, of which the first is enough for most runs."""
    slow = [pytest.param(value, marks=pytest.mark.slow) for value in others]
    return pytest.mark.parametrize(name, [first, *slow])


idle_or_busy = others_slow("what", "idle", "under load")


@contextlib.asynccontextmanager
async def doing(stack: Stack, what: str) -> AsyncIterator[None]:
    if what == "idle":
        yield
        return
    async with load(stack):
        yield


@idle_or_busy
@others_slow("number", signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
async def test_service_comes_back_whichever_child_is_signalled(
    tmp_path: Path, number: signal.Signals, what: str
) -> None:
    async with running(tmp_path, "--drain-timeout", "1") as stack:
        async with doing(stack, what):
            for kind in CHILDREN:
                child = await stack.one(kind)
                send(child, number)
                if (kind, number) not in DEAF:
                    await gone(child)
                    # A grammar process comes with the next grammar.
                    if kind != "grammars":
                        await stack.one(kind, other_than=child)
                await stack.answers()
        stack.process.send_signal(signal.SIGTERM)
        assert await stack.ends() == 0


@idle_or_busy
@others_slow("number", signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
async def test_nothing_is_left_behind(tmp_path: Path, number: signal.Signals, what: str) -> None:
    async with running(tmp_path, "--drain-timeout", "1") as stack, doing(stack, what):
        stack.process.send_signal(number)
        assert await stack.ends() == (-signal.SIGKILL if number == signal.SIGKILL else 0)


@pytest.mark.slow
@every_signal
async def test_service_comes_whichever_child_is_signalled_as_it_starts(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with started(tmp_path) as stack:
        for kind in ("envoy", "server", "engine"):
            send(await stack.one(kind), number)
        await stack.answers()
        stack.process.send_signal(signal.SIGTERM)
        assert await stack.ends() == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["engine", "up", "envoy", "server"])
@every_signal
async def test_a_signal_at_the_start_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals, kind: str
) -> None:
    async with started(tmp_path) as stack:
        # At the moment when this is the newest of its processes.
        await stack.one(kind)
        stack.process.send_signal(number)
        code = await stack.ends()
        if kind == "up":
            # It may not have taken the signals over yet; there is nothing to end then, either.
            assert code in (0, -number)
        else:
            assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)


async def test_settings_that_cannot_work_end_it_with_one_line(tmp_path: Path) -> None:
    async with started(tmp_path, "--replicas", "2", "--model", "gone=/no/such/folder") as stack:
        assert await stack.process.wait() == 1
        assert await stack.ends() == 1
        log = stack.log.read_text()
    # Nothing was started.
    assert log == "Error: the model 'gone': there is no folder /no/such/folder\n"


async def test_a_server_that_cannot_start_says_why_as_it_logs(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ovchat_server", "serve", "--log-format=json"),
        *(f"--model=successor={ROOT}/models/successor", f"--grpc-socket={tmp_path}/no/socket"),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    _, told = await process.communicate()
    entry = json.loads(told.splitlines()[-1])
    assert process.returncode == 1
    assert entry["level"] == "ERROR"
    assert entry["message"] == f"--grpc-socket: there is no folder {tmp_path}/no"
