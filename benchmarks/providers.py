"""What it costs to ask a provider through a router, beside asking it directly.

    .venv/bin/python -m benchmarks.providers [--rounds 5] [--streams 64] [--pace 30]

The provider has all its answers ready (`canned_server`), so that what shows is the router: an
`ovchat up` without models of its own. Each round asks both in turn; given are the median over the
rounds [least to most], ratios and differences within a round. The machine must do nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.canned_server import UNPACED, canned_server, moments
from benchmarks.figures import Figures, differences, quantile, ratios, spreads
from benchmarks.load_client import RestClient, post
from benchmarks.service import configured
from benchmarks.sse import timed_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.service import Service

NAME = "canned"
PROVIDER = """
[[providers]]
name = "{name}"
base_url = "http://127.0.0.1:{port}/v3"
max_tokens_field = "max_completion_tokens"
"""
DIRECT, ROUTER = "direct", "router"
KINDS = ("server", "Envoy")


@dataclass(frozen=True, slots=True)
class Load:
    """Streams at once.

    Attributes:
        about: What it is.
        streams: How many.
        repeats: Requests of each, one after the other.
        tokens: Events of each answer.
        pace: See `canned_server`.
    """

    about: str
    streams: int
    repeats: int
    tokens: int
    pace: str

    async def of(self, client: RestClient, prefix: str) -> Figures:
        """What a client finds who asks for models with a prefix."""
        body = {
            "model": prefix + self.pace,
            "messages": [{"role": "user", "content": "Hello!"}],
            "max_completion_tokens": self.tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        request = post(body)

        async def lane() -> list[tuple[float, list[tuple[float, bytes]]]]:
            return [await client.send(request) for _ in range(self.repeats)]

        gc.collect()
        lanes = await asyncio.gather(*(lane() for _ in range(self.streams)))
        answers = [answer for answers in lanes for answer in answers]
        firsts: list[float] = []
        late: list[float] = []
        ends: list[float] = []
        for start, parts in answers:
            *events, _ = timed_events(parts)
            found = [(moment, sent) for moment, data in events for sent in moments(data)]
            if len(found) != self.tokens:
                raise RuntimeError(f"{len(found)} events instead of {self.tokens}")
            firsts.append(found[0][0] - start)
            ends.append(found[-1][0])
            late += [moment - sent for moment, sent in found]
        return {
            "TTFT ms": statistics.median(firsts) * 1000,
            "TTFT p99 ms": quantile(firsts, 0.99) * 1000,
            "events/s": len(late) / (max(ends) - min(start for start, _ in answers)),
            "late ms": statistics.median(late) * 1000,
            "late p99 ms": quantile(late, 0.99) * 1000,
        }


def loads(streams: int, pace: float) -> Sequence[Load]:
    """What is measured: five seconds of each paced stream."""
    return (
        Load("1 stream, one event an answer", 1, 200, 1, UNPACED),
        Load(f"{streams} streams, {pace:g} events/s each", streams, 1, round(5 * pace), f"{pace}"),
        Load(f"{streams} streams, as fast as they are read", streams, 1, 300, UNPACED),
    )


async def measure(rounds: int, each: Sequence[Load]) -> dict[str, list[dict[str, Figures]]]:
    """The figures of each round, by load and who was asked."""
    found: dict[str, list[dict[str, Figures]]] = {load.about: [] for load in each}
    async with canned_server() as port:
        table = PROVIDER.format(name=NAME, port=port)
        async with configured(table, f"{NAME}/{UNPACED}") as service:
            clients = {DIRECT: RestClient("", port), ROUTER: RestClient("", service.rest_port)}
            for load in each:
                # Not counted: connections are made.
                for name, client in clients.items():
                    await _figures(load, name, client, service)
            for number in range(rounds):
                for load in each:
                    # Who comes first in one round comes last in the next.
                    names = sorted(clients, reverse=bool(number % 2))
                    found[load.about].append(
                        {name: await _figures(load, name, clients[name], service) for name in names}
                    )
            for client in clients.values():
                await client.close()
    return found


async def _figures(load: Load, name: str, client: RestClient, service: Service) -> Figures:
    """A load's figures, of the router with its processor time."""
    if name == DIRECT:
        return await load.of(client, "")
    before = service.work()
    figures = await load.of(client, f"{NAME}/")
    after, events = service.work(), load.streams * load.repeats * load.tokens
    return figures | {
        f"{kind} us per event": (after[kind] - before[kind]) / events * 1e6 for kind in KINDS
    }


def tell(rounds: Sequence[dict[str, Figures]]) -> None:
    """Print a row for each figure: both, and the router's by or less the direct one."""
    direct, router = (spreads(rounds, name) for name in (DIRECT, ROUTER))
    by_direct = ratios(rounds, ROUTER, DIRECT)
    for name, spread in router.items():
        row = f"    {name:<22}{direct.get(name, '')!s:<30}{spread!s:<30}"
        if name == "events/s":
            row += f"x {by_direct[name]}"
        elif more := differences(rounds, ROUTER, DIRECT, name):
            row += f"+ {more}"
        print(row.rstrip())


def main() -> None:
    """Read the command line, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--pace", type=float, default=30, help="events/s of each stream")
    options = parser.parse_args()
    each = loads(options.streams, options.pace)
    for about, rounds in asyncio.run(measure(options.rounds, each)).items():
        print(f"{about}\n    {'':<22}{DIRECT:<30}{ROUTER:<30}")
        tell(rounds)


if __name__ == "__main__":
    main()
