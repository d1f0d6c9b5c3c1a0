"""What `ovchat up` does when something does not play along: an Envoy that hangs, a full machine."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.backoff import FIRST_DELAY, Backoff
from ovchat_server.launch import http, up
from ovchat_server.launch.admin import Admin
from ovchat_server.launch.child import Child, Program
from ovchat_server.launch.envoy_config import Address
from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.service import Checks, Service
from tests.launch.stack import running, send

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def hung_envoy() -> Iterator[Any]:
    """A plan whose Envoy is stopped: the kernel takes connections for it, nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        yield SimpleNamespace(
            admin=Admin(Address("127.0.0.1", port)),
            host="127.0.0.1",
            rest_port=port,
            drain_timeout=1.0,
            replicas=("one",),
        )


async def serves() -> None:
    """At once."""


async def test_an_envoy_that_hangs_does_not_hold_up_the_end(
    hung_envoy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_TIMEOUT", 0.2)
    stopped: list[str] = []

    def service(name: str) -> Any:
        async def stop(patience: float) -> None:
            assert patience
            stopped.append(name)

        return SimpleNamespace(stop=stop)

    await up._stop(hung_envoy, [service("server")], service("Envoy"))

    assert stopped == ["server", "Envoy"]


async def test_a_start_an_answer_and_a_stop_are_few_lines(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        await stack.answers()
        stack.process.send_signal(signal.SIGINT)
        assert await stack.ends() == 0
    lines = stack.log.read_text().splitlines()
    # Envoy's access log.
    lines += [line for line in stack.printed.splitlines() if line.startswith("{")]
    assert len(lines) <= 10, lines
    assert sum("stopping: no answer is under way" in line for line in lines) == 1


@pytest.mark.slow
async def test_a_stopped_envoy_and_its_servers_end(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        send(await stack.one("envoy"), signal.SIGSTOP)
        stack.process.send_signal(signal.SIGTERM)
        await stack.says("stopping")
        assert await stack.ends() == 0


@pytest.mark.parametrize("failing", [{1}, {2}, {2, 3}])
async def test_a_start_that_the_machine_has_no_room_for_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failing: set[int]
) -> None:
    spawn, count, enough = Child.spawn, 0, asyncio.Event()

    async def sometimes(*args: Any) -> Child:
        nonlocal count
        count += 1
        if count in failing:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        if count > max(failing):
            enough.set()
        return await spawn(*args)

    monkeypatch.setattr(Child, "spawn", sometimes)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    service = Service("it", Program(["true"]), Checks(serves), Backoff(sleep))
    service.start()
    ended = asyncio.create_task(service.ended())
    again = asyncio.create_task(enough.wait())
    try:
        await asyncio.wait([ended, again], return_when=asyncio.FIRST_COMPLETED)
        assert not ended.done(), ended.exception()
    finally:
        again.cancel()
        await service.close()
    said = "it could not be started (Resource temporarily unavailable); starting it again in "
    assert caplog.text.count(said) == len(failing)
    assert slept[: len(failing)] == [FIRST_DELAY, FIRST_DELAY * 2][: len(failing)]
    with pytest.raises((asyncio.CancelledError, LaunchError)):
        await ended


async def test_a_third_signal_waits_for_nothing(hung_envoy: Any) -> None:
    told, never = asyncio.Event(), asyncio.Event()

    async def stop_now(patience: float) -> None:
        assert patience
        told.set()
        await never.wait()

    service: Any = SimpleNamespace(stop_now=stop_now)
    received: asyncio.Queue[int] = asyncio.Queue()
    signals: Any = SimpleNamespace(next=received.get)
    ending = asyncio.create_task(up._stop_at_signal(hung_envoy, [service], service, signals))
    received.put_nowait(signal.SIGTERM)
    await told.wait()
    assert not ending.done()
    received.put_nowait(signal.SIGTERM)
    await ending


async def test_one_of_several_servers_says_what_its_own_stop_waits_for(tmp_path: Path) -> None:
    async with running(tmp_path, "--replicas=2") as stack:
        send(stack.processes("server")[0], signal.SIGTERM)
        await stack.says("serves again")
        stack.process.send_signal(signal.SIGTERM)
        assert await stack.ends() == 0
        told = [json.loads(line) for line in stack.log.read_text().splitlines()]
    stops = [entry for entry in told if entry["message"] == "stopping: no answer is under way"]
    # The second line speaks for all.
    assert ["server" in entry for entry in stops] == [True, False]
