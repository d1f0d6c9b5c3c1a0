"""What the client itself costs: it reads from a server that has all its answers ready.

    .venv/bin/python -m benchmarks.client_cost [--streams 16] [--tokens 500]

Prints the client's processor time for each event, how many events it reads a second, and how late
it notes an event that comes by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time

from benchmarks.canned_server import UNPACED, canned_server, moments
from benchmarks.figures import Figures, quantile
from benchmarks.load_client import RestClient, post
from benchmarks.plan import Ask, Lane, Plan
from benchmarks.sse import timed_events

# Events a second of a slow stream, and how many.
PACE, PACED = 200, 200


async def client_cost(streams: int = 16, tokens: int = 500) -> Figures:
    """The client's cost, by name."""
    async with canned_server() as port:
        rest = RestClient(UNPACED, port)
        ask = Ask(messages=(("user", "Hello!"),), max_tokens=tokens)
        lanes = tuple(Lane((ask,)) for _ in range(streams))
        await rest.run(Plan((lanes,)))
        start, work = time.perf_counter(), time.process_time()
        await rest.run(Plan((lanes,)))
        seconds, work = time.perf_counter() - start, time.process_time() - work
        late = await _lateness(rest)
        await rest.close()
    events = streams * tokens
    return {
        "client us per event": work / events * 1e6,
        "events/s": events / seconds,
        "noted late us": statistics.median(late) * 1e6,
        "noted late p99 us": quantile(late, 0.99) * 1e6,
    }


async def _lateness(rest: RestClient) -> list[float]:
    """Seconds from when an event was sent to when the client noted it, of one slow stream."""
    _, parts = await rest.send(post({"model": str(PACE), "max_completion_tokens": PACED}))
    *events, _ = timed_events(parts)
    return [moment - sent for moment, data in events for sent in moments(data)]


def main() -> None:
    """Read the command line, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=500)
    options = parser.parse_args()
    for name, value in asyncio.run(client_cost(options.streams, options.tokens)).items():
        print(f"{name:<22}{value:>12.1f}")


if __name__ == "__main__":
    main()
