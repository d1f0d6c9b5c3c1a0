"""How long health and models take to answer while a long prompt is read.

    .venv/bin/python benchmarks/prefill.py [--rest-port 8000] [--grpc-port 9000] [--rounds 10]

Needs a server (`make run`). Probes in turn while nothing runs and while a prompt of about 3,000
tokens is prefilled, and prints both, so that the numbers can be compared on any machine.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc.aio
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PROMPT_TOKENS = 3000


@dataclass
class Latencies:
    """Of one kind of probe, in milliseconds."""

    idle: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)


async def probe(call: Callable[[], Awaitable[object]], into: list[float]) -> None:
    """Measure one call."""
    start = time.perf_counter()
    await call()
    into.append((time.perf_counter() - start) * 1000)


async def prompt_of(client: httpx.AsyncClient, model: str, tokens: int, salt: int) -> str:
    """A prompt of about so many tokens that no cache has seen."""
    words = f"{salt} "
    body = {"model": model, "messages": [{"role": "user", "content": words * 50}], "max_tokens": 1}
    usage = (await client.post("/v3/chat/completions", json=body)).json()["usage"]
    return words * (50 * tokens // usage["prompt_tokens"])


async def measure(arguments: argparse.Namespace) -> None:
    """Run the rounds and print the table."""
    base = f"http://127.0.0.1:{arguments.rest_port}"
    health, models = Latencies(), Latencies()
    prefill: list[float] = []
    async with (
        httpx.AsyncClient(base_url=base, timeout=120) as client,
        grpc.aio.insecure_channel(f"127.0.0.1:{arguments.grpc_port}") as channel,
    ):
        stub = health_pb2_grpc.HealthStub(channel)

        async def check() -> object:
            return await stub.Check(health_pb2.HealthCheckRequest())

        async def list_models() -> object:
            return await client.get("/v3/models")

        for number in range(arguments.rounds):
            prompt = await prompt_of(client, arguments.model, PROMPT_TOKENS, 1000 + number)
            body = {
                "model": arguments.model,
                "messages": [{"role": "user", "content": prompt}],
                "max_tokens": 1,
            }
            for _ in range(20):
                await probe(check, health.idle)
                await probe(list_models, models.idle)
            start = time.perf_counter()
            call = asyncio.create_task(client.post("/v3/chat/completions", json=body))
            while not call.done():
                await probe(check, health.busy)
                await probe(list_models, models.busy)
            (await call).raise_for_status()
            prefill.append((time.perf_counter() - start) * 1000)

    print(f"prefill of {PROMPT_TOKENS} tokens: median {statistics.median(prefill):.0f} ms")
    print(f"{'':24}{'idle':>18}{'during prefill':>18}")
    print(f"{'':24}{'median':>9}{'max':>9}{'median':>9}{'max':>9}")
    for name, latencies in (("grpc health", health), ("GET /v3/models", models)):
        row = f"{name:24}"
        for values in (latencies.idle, latencies.busy):
            row += f"{statistics.median(values):7.1f}ms{max(values):7.1f}ms"
        print(row)


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rest-port", type=int, default=8000)
    parser.add_argument("--grpc-port", type=int, default=9000)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--rounds", type=int, default=10)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
