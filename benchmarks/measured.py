"""One run of one contender: what it was asked, whether that is what it did, and the figures."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

from benchmarks.figures import Figures, figures_of
from benchmarks.machine import busy
from benchmarks.report import TOO_LATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.load_client import Contender
    from benchmarks.plan import Plan, Trace


async def measured(contender: Contender, plan: Plan, slack: float = 0) -> Figures:
    """A run's figures, with what the client and all processors did meanwhile.

    Args:
        contender: Who is asked.
        plan: What.
        slack: How far off the tokens of a prompt may be, as a share of them.

    Raises:
        RuntimeError: It was not all read and written that was asked for.
    """
    gc.collect()
    client, (work, stolen), start = time.process_time(), busy(), time.perf_counter()
    traces = await contender.run(plan)
    seconds = time.perf_counter() - start
    check(plan, traces, slack)
    client, (all_work, all_stolen) = time.process_time() - client, busy()
    figures = figures_of(traces)
    if late := _too_late(plan, traces):
        figures[TOO_LATE] = late
    figures["client processors"] = client / seconds
    figures["busy processors"] = (all_work - work) / seconds
    figures["stolen processors"] = (all_stolen - stolen) / seconds
    return figures


def _too_late(plan: Plan, traces: Sequence[Trace]) -> int:
    """How many requests were to find others running, and did not."""
    late = 0
    remaining = iter(traces)
    for phase in plan.phases:
        lanes = [(lane.delay, [next(remaining) for _ in lane.asks]) for lane in phase]
        ends = [found[-1].end for delay, found in lanes if not delay]
        late += sum(delay > 0 and found[0].start > min(ends) for delay, found in lanes)
    return late


def check(plan: Plan, traces: Sequence[Trace], slack: float = 0) -> None:
    """Make sure that everything was read and written that was asked for.

    Raises:
        RuntimeError: It was not, so the figures compare nothing.
    """
    asks = (ask for phase in plan.phases for lane in phase for ask in lane.asks)
    for ask, trace in zip(asks, traces, strict=True):
        wanted = ask.max_tokens * ask.choices
        read, written = trace.prompt_tokens, trace.completion_tokens
        off = abs(read - len(ask.tokens)) > slack * len(ask.tokens)
        if off or (written != wanted and ask.whole):
            expected = f"{len(ask.tokens)} and {wanted}"
            raise RuntimeError(f"{read} tokens in and {written} out instead of {expected}")
