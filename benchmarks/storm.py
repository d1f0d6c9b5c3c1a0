"""Thousands of requests of mixed length in a cache far too small: is any of them lost or wrong?

    .venv/bin/python -m benchmarks.storm [--requests 10000] [--at-once 32] [--blocks 40]
                                         [--kill-every TOKENS]

Starts a server of its own with the successor model, whose next token is the previous one plus 1,
so that every token of every answer is checked. A fifth of the requests is cancelled half way; with
--kill-every each engine is killed once it has generated so many. Exits with 1 where a request was
lost, a token was wrong, or a block was still held at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import sys
import time
from pathlib import Path

import grpc.aio

from benchmarks.schedule import Progress
from ovchat_server.app import Server
from ovchat_server.domain.models import ModelState
from ovchat_server.settings import ModelSettings, Settings
from tests.conftest import settings_of
from tests.storm import Storm, dying_engines

SUCCESSOR = Path(__file__).resolve().parent.parent / "models/successor"


async def storm(options: argparse.Namespace) -> bool:
    """Run the load, print what came of it, and return whether all went well."""
    progress = Progress(sys.stderr)
    server = Server(_settings(options.blocks))
    async with server.running(), grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        await _ready(server)
        context_length = server._engines["successor"].status.context_length  # noqa: SLF001
        storm = Storm(channel, context_length)
        start = time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            dying = dying_engines(server, "successor", options.kill_every or math.inf)
            deaths = stack.enter_context(dying)

            def state() -> str:
                ended = storm.outcomes.total() - storm.outcomes["again"]
                return f"{ended} of {options.requests} requests, {len(storm.wrong)} wrong"

            await stack.enter_async_context(progress.repeated(state))
            await storm.run(options.requests, options.at_once)
        seconds = time.monotonic() - start
        held = await _held(server)
        load = server._engines["successor"].status.load  # noqa: SLF001  the one that runs
    print(f"{options.requests} requests in {seconds:.0f} s, engine deaths: {len(deaths)}")
    print(f"outcomes: {dict(storm.outcomes)}")
    print(f"wrong: {len(storm.wrong)}, lost: {sum(storm.lost.values())}, blocks held: {held}")
    print(f"load of the last engine: {load}")
    return not (storm.wrong or storm.lost or held)


async def _held(server: Server) -> int:
    """Blocks that are still held a second after the last request."""
    engine = server._engines["successor"]  # noqa: SLF001  see above
    await _ready(server)
    await asyncio.sleep(1)
    load = engine.status.load
    return load.used_kv_blocks if load else -1


async def _ready(server: Server) -> None:
    """Until the engine is there; it may just have died."""
    engine = server._engines["successor"]  # noqa: SLF001  see above
    while engine.status.state is not ModelState.READY:  # noqa: ASYNC110  it has no event
        await asyncio.sleep(0.1)


def _settings(blocks: int) -> Settings:
    exact = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
    model = ModelSettings(name="successor", path=SUCCESSOR, kv_blocks=blocks, properties=exact)
    return settings_of(model, log_level="error")


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--kill-every", type=int, default=0)
    return 0 if asyncio.run(storm(parser.parse_args())) else 1


if __name__ == "__main__":
    sys.exit(main())
