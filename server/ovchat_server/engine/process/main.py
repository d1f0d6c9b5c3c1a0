"""The engine process: `python -m ovchat_server.engine.process.main FD`.

One thread: take commands, step, send what came of it. While there is nothing to do it waits for
a command. What works on the requests is named by the spec. The process ends when the server
closes its end of the socket, so it cannot outlive a server that goes away, however it goes.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import TYPE_CHECKING, NoReturn

import msgspec
from setproctitle import setproctitle

from ovchat_server.engine.contract.frames import encode
from ovchat_server.engine.contract.messages import (
    Failed,
    IsolatedRun,
    LimitsT,
    OutputT,
    Report,
    RequestT,
)
from ovchat_server.engine.contract.spec import EngineSpec
from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.process.channel import Channel, leave_ending_to_the_server
from ovchat_server.engine.process.error_text import error_text
from ovchat_server.engine.process.intake import Intake
from ovchat_server.engine.process.telemetry_off import turn_off_telemetry

if TYPE_CHECKING:
    from ovchat_server.engine.contract.worker import LoadWorker, Worker


class _WorkerContext:
    """See engine.contract.worker.WorkerContext."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def wake(self) -> None:
        self._channel.wake()

    def isolate(self, identifier: int | None) -> None:
        self._channel.send(encode(IsolatedRun(identifier)))


def serve(channel: Channel, worker: Worker[RequestT, OutputT, LimitsT]) -> None:
    """Run until the server is gone."""
    intake = Intake(worker)
    taken = 0
    while True:
        frames = channel.receive(wait=not worker.busy)
        if channel.closed:
            return
        for frame in frames:
            intake.take(frame)
        taken += len(frames)
        worker.poll()
        if worker.busy:
            began = time.monotonic()
            report = worker.step()
            report = msgspec.structs.replace(report, began=began, ended=time.monotonic())
            intake.note(report)
        elif frames:
            # So that the server knows of each command that it was taken.
            report = Report([], worker.load())
        else:
            continue
        channel.send(encode(msgspec.structs.replace(report, taken=taken, busy=worker.busy)))


def main() -> NoReturn:
    """Load the model and serve it over the socket that was inherited."""
    leave_ending_to_the_server()
    turn_off_telemetry()
    channel = Channel.inherited()
    frames = channel.receive(wait=True)
    if not frames:
        _end(1)
    spec = msgspec.msgpack.decode(frames[0], type=EngineSpec)
    setproctitle(f"ovchat engine {spec.name}")
    if spec.processors:
        # Before there are other threads, which inherit it.
        os.sched_setaffinity(0, spec.processors)
    try:
        # Its library takes seconds and memory, so not before the process has its name.
        worker = _named(spec.worker)(frames[0], _WorkerContext(channel))
        channel.send(encode(worker.ready))
        serve(channel, worker)
        _end(0)
    except ModelLoadError as error:
        failure = Failed(str(error), lasting=True)
    except Exception as error:  # noqa: BLE001  whatever it is, the server must learn of it
        failure = Failed(f"its engine failed: {error_text(error)}")
    channel.send(encode(failure))
    _end(1)


def _end(code: int) -> NoReturn:
    """End the process with all that it holds.

    Unloading a model takes longer than the system needs to take everything back, and genai
    complains of blocks that were still in use.
    """
    sys.stdout.flush()
    os._exit(code)


def _named(path: str) -> LoadWorker:
    """Load the function of an import path, "module:function"."""
    module, _, name = path.partition(":")
    load: LoadWorker = getattr(importlib.import_module(module), name)
    return load


if __name__ == "__main__":
    main()
