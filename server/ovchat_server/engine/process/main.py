"""The engine process: `python -m ovchat_server.engine.process.main FD`.

One thread: take commands, step, send what came of it. While there is nothing to do it
waits for a command. Another one compiles grammars. The process ends when the server closes
its end of the socket, so it cannot outlive a server that goes away, however it goes.
"""

from __future__ import annotations

import os
import sys

import msgspec
from setproctitle import setproctitle

from ovchat_server.engine.contract.frames import encode
from ovchat_server.engine.contract.generation_messages import GenerationLimits, SequenceOutput
from ovchat_server.engine.contract.messages import (
    Capabilities,
    Failed,
    IsolatedRun,
    Ready,
    Report,
)
from ovchat_server.engine.contract.spec import EngineSpec
from ovchat_server.engine.process.channel import Channel, leave_ending_to_the_server
from ovchat_server.engine.process.grammar_gate import GrammarGate, Grammars
from ovchat_server.engine.process.grammar_thread import GrammarThread
from ovchat_server.engine.process.intake import Intake
from ovchat_server.engine.scheduling.kv_pool import KvPool
from ovchat_server.engine.scheduling.scheduler import Scheduler
from ovchat_server.engine.scheduling.step_budget import StepBudget

MAX_SEARCH_WIDTH = 32


def serve(channel: Channel, gate: GrammarGate, scheduler: Scheduler) -> None:
    """Run until the server is gone."""
    intake = Intake(gate, scheduler)
    taken = 0
    while True:
        frames = channel.receive(wait=not scheduler.busy)
        if channel.closed:
            return
        for frame in frames:
            intake.take(frame)
        taken += len(frames)
        gate.open()
        if scheduler.busy:
            report = scheduler.step()
            intake.note(report)
        elif frames:
            # So that the server knows of each command that it was taken.
            report = Report[SequenceOutput]([], scheduler.load())
        else:
            continue
        report = msgspec.structs.replace(report, taken=taken, busy=scheduler.busy)
        channel.send(encode(report))


def main() -> int:
    """Load the model and serve it over the socket that was inherited."""
    leave_ending_to_the_server()
    channel = Channel.inherited()
    frames = channel.receive(wait=True)
    if not frames:
        return 1
    spec = msgspec.msgpack.decode(frames[0], type=EngineSpec)
    setproctitle(f"ovchat engine {spec.name}")
    if spec.processors:
        # Before there are other threads, which inherit it.
        os.sched_setaffinity(0, spec.processors)
    try:
        # Seconds and a gigabyte, so not before the process has its name.
        from ovchat_server.engine.genai.pipeline import GenaiPipeline  # noqa: PLC0415

        pipeline = GenaiPipeline(spec)
        grammars = Grammars(GrammarThread(pipeline.grammar_compiler, channel.wake))
        scheduler = Scheduler(
            pipeline,
            KvPool(pipeline.total_blocks, pipeline.block_size),
            StepBudget(spec.max_step_seconds, spec.max_num_batched_tokens),
            # Before the step, which may be the last thing that this process does.
            on_trial=lambda identifier: channel.send(encode(IsolatedRun(identifier))),
            compiled=grammars.compiled,
        )
        gate = GrammarGate(grammars, scheduler)
        context_length = min(spec.context_length, scheduler.context_length)
        search_lengths = tuple(
            min(spec.context_length, scheduler.search_length(width))
            for width in range(1, MAX_SEARCH_WIDTH + 1)
        )
        ready = Ready(
            GenerationLimits(context_length, search_lengths),
            scheduler.load(),
            Capabilities(sees_logits=pipeline.sees_logits),
        )
        channel.send(encode(ready))
        serve(channel, gate, scheduler)
    except Exception as error:  # noqa: BLE001  whatever it is, the server must learn of it
        channel.send(encode(Failed(f"{type(error).__name__}: {error}")))
        return 1
    return 0


if __name__ == "__main__":
    # Unloading a model takes longer than the system needs to take everything back, and
    # genai complains of blocks that were still in use.
    code = main()
    sys.stdout.flush()
    os._exit(code)
