"""Figures of what came back, ratios within a round, medians and spread over rounds."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.plan import Trace

# By name; milliseconds where the name says so.
Figures = dict[str, float]


class Spread(msgspec.Struct, frozen=True):
    """Over rounds."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        """Return it for people."""
        return f"{_number(self.median)} [{_number(self.least)} to {_number(self.most)}]"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def quantile(values: Sequence[float], share: float) -> float:
    """The nearest rank: of few values, a high one is the highest."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def gaps(trace: Trace) -> list[float]:
    """Seconds between what came of each choice."""
    return [
        later - earlier
        for times in trace.arrivals.values()
        for earlier, later in itertools.pairwise(times)
    ]


def first_arrival(trace: Trace) -> float:
    """Seconds from the request to the first that can be seen.

    Raises:
        ValueError: Nothing came.
    """
    firsts = [times[0] for times in trace.arrivals.values() if times]
    if not firsts:
        raise ValueError(f"nothing of the answer to {trace.label!r} could be seen")
    return min(firsts) - trace.start


def figures_of(traces: Sequence[Trace]) -> Figures:
    """All figures of one run; those of labelled requests under "label: name", too."""
    figures = _figures(traces)
    labels = {trace.label: None for trace in traces if trace.label}
    if len(labels) > 1:
        for label in labels:
            own = _figures([trace for trace in traces if trace.label == label])
            figures |= {f"{label}: {name}": value for name, value in own.items()}
    return figures


def _pace(trace: Trace) -> float:
    """Seconds from token to token of each choice, on average after the first."""
    tokens = trace.completion_tokens / len(trace.arrivals) - 1
    spans = [times[-1] - times[0] for times in trace.arrivals.values() if times]
    return statistics.mean(spans) / tokens if tokens > 0 else 0.0


def _figures(traces: Sequence[Trace]) -> Figures:
    tokens = sum(trace.completion_tokens for trace in traces)
    # Of a small model an answer may be control tokens alone, with nothing to see.
    visible = [trace for trace in traces if any(trace.arrivals.values())] or traces
    firsts = [first_arrival(trace) for trace in visible]
    between = [gap for trace in traces for gap in gaps(trace)]
    whole = [trace.end - trace.start for trace in traces]
    seen = sum(len(times) for trace in traces for times in trace.arrivals.values())
    seconds = max(trace.end for trace in traces) - min(trace.start for trace in traces)
    figures = {
        "tokens/s": tokens / seconds,
        "TTFT ms": statistics.median(firsts) * 1000,
        "TTFT p99 ms": quantile(firsts, 0.99) * 1000,
        "whole ms": statistics.median(whole) * 1000,
        "whole p99 ms": quantile(whole, 0.99) * 1000,
        "chunks per token": seen / tokens,
    }
    if paces := [pace for trace in visible if (pace := _pace(trace))]:
        figures["ms per token"] = statistics.median(paces) * 1000
    if between:
        figures |= {
            "ITL ms": statistics.median(between) * 1000,
            "ITL p99 ms": quantile(between, 0.99) * 1000,
            "worst gap ms": max(between) * 1000,
        }
    return figures


def ratios(rounds: Iterable[Mapping[str, Figures]], contender: str, base: str) -> dict[str, Spread]:
    """Each figure of a contender by the base's in the same round."""
    found: dict[str, list[float]] = {}
    for one in rounds:
        if contender not in one or base not in one:
            continue
        for name, value in one[contender].items():
            if unit := one[base].get(name):
                found.setdefault(name, []).append(value / unit)
    return {name: Spread.of(values) for name, values in found.items()}


def differences(
    rounds: Iterable[Mapping[str, Figures]], contender: str, base: str, name: str
) -> Spread | None:
    """A figure of a contender less the base's in the same round; None where it never was."""
    found = [
        one[contender][name] - one[base][name]
        for one in rounds
        if name in one.get(contender, {}) and name in one.get(base, {})
    ]
    return Spread.of(found) if found else None


def spreads(rounds: Iterable[Mapping[str, Figures]], contender: str) -> dict[str, Spread]:
    """Each figure of a contender over the rounds."""
    found: dict[str, list[float]] = {}
    for one in rounds:
        for name, value in one.get(contender, {}).items():
            found.setdefault(name, []).append(value)
    return {name: Spread.of(values) for name, values in found.items()}
