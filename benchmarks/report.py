"""Results as JSON and as tables in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.figures import Figures, Spread, differences, ratios, spreads
from benchmarks.references.servers import REFERENCES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BASE = "bare loop"
# The same process once more: what its ratio is off 1 by is noise.
AGAIN = "bare loop again"
# The same process, to which requests that come at once come one after the other.
SPREAD = "bare loop, spread"
REST = "REST"
# Ours over REST with `speculation = "lookup"`.
LOOKUP = "lookup"
OTHERS = tuple(REFERENCES)
# What ours over REST is compared with, besides the bare loop.
BESIDE = (SPREAD, *OTHERS)
CONTENDERS = (BASE, AGAIN, SPREAD, "gRPC", REST, LOOKUP, *OTHERS)
# Whose ratios to the bare loop are drawn.
PICTURED = ("gRPC", REST)
# What the client and all processes of the machine took meanwhile: no figures to compare.
PROCESSORS = ("client processors", "busy processors", "stolen processors")
# What a table shows of all requests, and of those of a label; TOO_LATE only where there were any.
MAIN = ("tokens/s", "TTFT ms", "ms per token", "ITL p99 ms", "whole ms", *PROCESSORS)
TOO_LATE = "requests that found nothing running"
LABELLED = (": TTFT ms", "running: worst gap ms")


class Result(msgspec.Struct, kw_only=True):
    """All that a run of the suite found.

    Attributes:
        model: Its name.
        machine: See `machine`.
        client: What the client itself costs, see `client_cost`.
        workloads: By name, what each is about.
        rounds: By workload: of each round, the figures by contender.
        service: By scenario (probes, memory, start): the figures of each round.
        left_out: By workload or scenario: rounds for which there was no time.
    """

    model: str
    machine: dict[str, str]
    client: Figures
    workloads: dict[str, str] = {}
    rounds: dict[str, list[dict[str, Figures]]] = {}
    service: dict[str, list[Figures]] = {}
    left_out: dict[str, int] = {}

    @property
    def has_pictures(self) -> bool:
        """Whether there is what pictures show: both doors of ours beside the bare loop."""
        return any(set(PICTURED) <= set(rounds[0]) for rounds in self.rounds.values())

    def listed_left_out(self) -> str:
        """Return what was left out, in words."""
        return ", ".join(f"{count} of {name}" for name, count in self.left_out.items())

    def summary(self) -> dict[str, Any]:
        """Medians and spreads: absolute, and by others' in the same round."""
        return {
            name: {
                contender: {
                    "figures": spreads(rounds, contender),
                    "ratios": ratios(rounds, contender, BASE),
                    "added TTFT ms": differences(rounds, contender, BASE, "TTFT ms"),
                    "REST by it": ratios(rounds, REST, contender) if contender in BESIDE else {},
                    "by REST": ratios(rounds, LOOKUP, REST) if contender == LOOKUP else {},
                }
                for contender in CONTENDERS
                if any(contender in one for one in rounds)
            }
            for name, rounds in self.rounds.items()
        }


def write(result: Result, directory: Path, name: str) -> Path:
    """Write `name`.json and `name`.md; returns the latter."""
    directory.mkdir(parents=True, exist_ok=True)
    value = {"result": result, "summary": result.summary()}
    text = msgspec.json.format(msgspec.json.encode(value), indent=1)
    (directory / f"{name}.json").write_bytes(text + b"\n")
    table = directory / f"{name}.md"
    table.write_text("\n".join(_lines(result, name)) + "\n")
    return table


def _lines(result: Result, name: str) -> Iterator[str]:
    yield f"# {result.model}"
    yield ""
    yield f"    {result.machine['command']}"
    yield ""
    yield from (f"- {key}: {value}" for key, value in result.machine.items() if key != "command")
    for key, value in result.client.items():
        yield f"- {key}: {value:.1f}"
    yield ""
    yield (
        "Median over rounds [least to most]. A ratio is taken within a round, to the bare loop: "
        "genai's pipeline in a process of its own, without tokenizer, network or client."
    )
    if any(name in result.machine for name in OTHERS):
        yield (
            "Below a workload, ours over REST by the servers of others in the same round: of "
            "tokens/s more than 1 is better, of times less."
        )
    if "--quick" in result.machine["command"]:
        yield from ("", "**`--quick`: answers of a few tokens. It shows that all works, no more.**")
    if result.left_out:
        yield from ("", f"Rounds left out for lack of time: {result.listed_left_out()}.")
    if result.has_pictures:
        yield ""
        yield f"![throughput]({name}-throughput.png) ![latency]({name}-latency.png)"
    for workload, rounds in result.rounds.items():
        yield from _table(f"{workload}: {result.workloads[workload]}", rounds)
    for scenario, found in result.service.items():
        yield from _list(scenario, found)


def _table(title: str, rounds: list[dict[str, Figures]]) -> Iterator[str]:
    present = [name for name in CONTENDERS if any(name in one for one in rounds)]
    others = [name for name in present if name != BASE]
    yield from ("", f"## {title}", "", f"Rounds: {len(rounds)}", "")
    yield f"| | {BASE} |" + "".join(f" {name} | {name} / {BASE} |" for name in others)
    yield f"|---|---|{'---|---|' * len(others)}"
    found = {name: spreads(rounds, name) for name in present}
    by_base = {name: ratios(rounds, name, BASE) for name in others}
    for figure in _shown(rounds):
        cells = [_spread(found[BASE].get(figure))]
        for name in others:
            ratio = None if figure in PROCESSORS else by_base[name].get(figure)
            cells += [_spread(found[name].get(figure)), _spread(ratio)]
        yield f"| {figure} | {' | '.join(cells)} |"
    added = (_spread(differences(rounds, name, BASE, "TTFT ms")) for name in others)
    yield "| TTFT ms more | |" + "".join(f" {cell} | |" for cell in added)
    pairs = [(LOOKUP, REST)] if LOOKUP in present else []
    yield from _pairs(rounds, pairs + [(REST, name) for name in present if name in BESIDE])


def _pairs(rounds: list[dict[str, Figures]], pairs: list[tuple[str, str]]) -> Iterator[str]:
    """One contender by another in the same round."""
    if not pairs:
        return
    yield ""
    yield "| |" + "".join(f" {one} / {other} |" for one, other in pairs)
    yield "|---|" + "---|" * len(pairs)
    by_other = [ratios(rounds, one, other) for one, other in pairs]
    for figure in _shown(rounds):
        if figure not in PROCESSORS and any(figure in found for found in by_other):
            cells = (_spread(found.get(figure)) for found in by_other)
            yield f"| {figure} | {' | '.join(cells)} |"


def _shown(rounds: list[dict[str, Figures]]) -> list[str]:
    """Those that a table shows: the main ones, and what is told of labelled requests."""
    known = sorted({name for one in rounds for figures in one.values() for name in figures})
    labelled = [name for name in known if name.endswith(LABELLED)]
    derived = [name for name in known if " / " in name or name == TOO_LATE]
    return [name for name in MAIN if name in known] + labelled + derived


def _list(title: str, found: list[Figures]) -> Iterator[str]:
    yield from ("", f"## {title}", "", f"Rounds: {len(found)}", "", "| | |", "|---|---|")
    rounds = [{"": figures} for figures in found]
    for name, spread in spreads(rounds, "").items():
        yield f"| {name} | {_spread(spread)} |"


def _spread(spread: Spread | None) -> str:
    return "" if spread is None else str(spread)
