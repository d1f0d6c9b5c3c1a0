"""More than the engine can do: do those that are let in fare as well as they do at capacity?

    .venv/bin/python -m benchmarks.overload [--seconds 60] [--times 4] [--at-once 16]

Starts a server of its own with the successor model. First as many callers as the cache has places
for ask one request after the other: the latency at capacity. Then requests come at so many times
that rate. Prints the latencies of those that are answered and of those that are refused, as
ratios to the latency at capacity where they have one, and the server's memory before and after.
At last 200 requests that give up after half a second, and how long the next one takes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ovchat.v1 import completion_pb2, completion_service_pb2_grpc
from ovchat_server.launch.ports import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SUCCESSOR = Path(__file__).resolve().parent.parent / "models/successor"
PROMPT_TOKENS, ANSWER_TOKENS = 120, 600
# Of 32 tokens, for prompt and answer.
BLOCKS_EACH = 23
CONFIG = """
[server]
grpc_port = {port}
metrics_port = 0

[[models]]
name = "successor"
path = "{path}"
kv_blocks = {blocks}
max_queue = {queue}
"""


@dataclass
class Outcome:
    """How requests ended, and how many seconds each took."""

    answered: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)


async def ask(
    stub: completion_service_pb2_grpc.CompletionServiceStub, outcome: Outcome, number: int
) -> None:
    """One request, of which no cache knows the prompt."""
    prompt = f"{number:08}".ljust(PROMPT_TOKENS, "#")
    request = completion_pb2.CreateCompletionRequest(
        model="successor",
        prompt=[completion_pb2.Prompt(text=prompt)],
        max_tokens=ANSWER_TOKENS,
        temperature=0,
    )
    start = time.perf_counter()
    try:
        await stub.CreateCompletion(request)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
            outcome.refused.append(time.perf_counter() - start)
        else:
            outcome.others[f"{error.code().name} {error.details()}"] += 1
    else:
        outcome.answered.append(time.perf_counter() - start)


async def at_capacity(
    stub: completion_service_pb2_grpc.CompletionServiceStub, at_once: int, seconds: float
) -> Outcome:
    """So many callers, one request after the other."""
    outcome = Outcome()
    end = time.monotonic() + seconds

    async def caller(first: int) -> None:
        number = first
        while time.monotonic() < end:
            await ask(stub, outcome, number)
            number += at_once

    await asyncio.gather(*map(caller, range(at_once)))
    return outcome


async def beyond(
    stub: completion_service_pb2_grpc.CompletionServiceStub, rate: float, seconds: float
) -> Outcome:
    """So many requests a second, whatever becomes of them."""
    outcome = Outcome()
    start = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(start + number / rate - time.monotonic(), 0))
            group.create_task(ask(stub, outcome, 10**6 + number))
    return outcome


async def after_giving_up(stub: completion_service_pb2_grpc.CompletionServiceStub) -> float:
    """Seconds that ten tokens take once 200 requests have given up."""
    long = completion_pb2.CreateCompletionRequest(
        model="successor", prompt=[completion_pb2.Prompt(text="a" * 100)], max_tokens=2000
    )
    calls = [stub.CreateCompletion(long, timeout=0.5) for _ in range(200)]
    await asyncio.gather(*calls, return_exceptions=True)
    short = completion_pb2.CreateCompletionRequest(
        model="successor", prompt=[completion_pb2.Prompt(text="a")], max_tokens=10
    )
    start = time.perf_counter()
    await stub.CreateCompletion(short)
    return time.perf_counter() - start


@contextlib.asynccontextmanager
async def serving(at_once: int, queue: int) -> AsyncIterator[tuple[grpc.aio.Channel, int]]:
    """A server with places for so many; its channel and its process id."""
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "ovchat.toml"
        blocks = at_once * BLOCKS_EACH
        config.write_text(CONFIG.format(port=port, path=SUCCESSOR, blocks=blocks, queue=queue))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "ovchat_server", "serve", "--config", str(config), "--log-level", "error"),
        )
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                watch = health_pb2_grpc.HealthStub(channel).Watch(
                    health_pb2.HealthCheckRequest(), wait_for_ready=True
                )
                async for update in watch:
                    if update.status == health_pb2.HealthCheckResponse.SERVING:
                        break
                yield channel, process.pid
        finally:
            process.terminate()
            await process.wait()


def resident_mib(pid: int) -> float:
    """Memory that a process has now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def tell(name: str, seconds: list[float], unit: float) -> None:
    """Print a row: count, median, 95th percentile, and the median by `unit`."""
    if not seconds:
        print(f"{name:<12} none")
        return
    median = statistics.median(seconds)
    tail = statistics.quantiles(seconds, n=20)[-1] if len(seconds) > 1 else median
    print(
        f"{name:<12} {len(seconds):>6}   median {median * 1000:8.1f} ms   "
        f"p95 {tail * 1000:8.1f} ms   of capacity's {median / unit:5.2f}"
    )


async def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    async with serving(options.at_once, max(options.at_once // 8, 1)) as (channel, pid):
        stub = completion_service_pb2_grpc.CompletionServiceStub(channel)
        await at_capacity(stub, options.at_once, 2)
        capacity = await at_capacity(stub, options.at_once, options.seconds / 4)
        unit = statistics.median(capacity.answered)
        rate = options.times * len(capacity.answered) / (options.seconds / 4)
        before = resident_mib(pid)
        overload = await beyond(stub, rate, options.seconds)
        after = resident_mib(pid)
        tell("at capacity", capacity.answered, unit)
        tell("answered", overload.answered, unit)
        tell("refused", overload.refused, unit)
        print(f"others: {dict(overload.others)}")
        print(f"server's memory: {before:.0f} MiB before, {after:.0f} MiB after")
        print(f"ten tokens after 200 gave up: {await after_giving_up(stub) * 1000:.0f} ms")


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--times", type=float, default=4)
    parser.add_argument("--at-once", type=int, default=16)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
