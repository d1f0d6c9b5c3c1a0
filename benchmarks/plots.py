"""Results as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl

from benchmarks.figures import ratios, spreads
from benchmarks.report import BASE, CONTENDERS, PICTURED

mpl.use("Agg")

from matplotlib import pyplot as plt  # after the choice of a backend that needs no screen

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchmarks.report import Result

WIDTH = 0.35
DECODE = "decode-"


def write_plots(result: Result, directory: Path, name: str) -> None:
    """Write `name`-throughput.png and `name`-latency.png."""
    if not result.has_pictures:
        return
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    _by_streams(left, result, "tokens/s")
    _bars(right, result, "tokens/s", "tokens/s / bare loop's")
    _save(figure, result, directory / f"{name}-throughput.png")
    figure, axes = plt.subplots(1, 3, figsize=(17, 5), layout="constrained")
    for axis, what in zip(axes, ("TTFT ms", "ms per token", "ITL p99 ms"), strict=True):
        _bars(axis, result, what, f"{what.removesuffix(' ms')} / bare loop's")
    _save(figure, result, directory / f"{name}-latency.png")


def _save(figure: Figure, result: Result, path: Path) -> None:
    processors = result.machine["processors"]
    figure.suptitle(f"{result.model}, {result.machine['processor']}, {processors} processors")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _by_streams(axis: Axes, result: Result, what: str) -> None:
    """A line for each contender over the number of streams."""
    known = [name for name in result.rounds if name.startswith(DECODE)]
    for contender in CONTENDERS:
        # Servers of others are not asked all of them.
        names = [name for name in known if all(contender in one for one in result.rounds[name])]
        if not names:
            continue
        streams = [int(name.removeprefix(DECODE)) for name in names]
        found = [spreads(result.rounds[name], contender)[what] for name in names]
        middle = [one.median for one in found]
        below = [one.median - one.least for one in found]
        above = [one.most - one.median for one in found]
        axis.errorbar(streams, middle, yerr=[below, above], label=contender, marker="o", capsize=3)
    axis.set_xscale("log", base=2)
    ticks = [name.removeprefix(DECODE) for name in known]
    axis.set_xticks([int(tick) for tick in ticks], ticks)
    axis.set(xlabel="streams", ylabel=what, ylim=(0, None), title="64 tokens in, 64 out")
    if known:
        axis.legend()


def _bars(axis: Axes, result: Result, what: str, title: str) -> None:
    """The ratio to the bare loop for each workload."""
    by_base = {
        name: [ratios(rounds, contender, BASE) for contender in PICTURED]
        for name, rounds in result.rounds.items()
    }
    # A short answer may come at once, and has no time between tokens.
    names = [name for name, all_found in by_base.items() if all(what in one for one in all_found)]
    for number, contender in enumerate(PICTURED):
        found = [by_base[name][number][what] for name in names]
        places = [place + (number - 0.5) * WIDTH for place in range(len(names))]
        middle = [one.median for one in found]
        errors = [
            [one.median - one.least for one in found],
            [one.most - one.median for one in found],
        ]
        axis.bar(places, middle, WIDTH, yerr=errors, label=contender, capsize=2)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axis.set(title=title)
    axis.legend()
