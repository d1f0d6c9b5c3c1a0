"""What is shown, computed from what servers answered."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from ovchat_server.top.snapshots import Key, total

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ovchat_server.top.snapshots import Numbers, Window

# Behind Envoy a server may go unheard for once: whom a call reaches is left to chance.
LOST_AFTER: Final = 3
READY: Final = "ovchat_model_ready"
RUNNING: Final = "vllm:num_requests_running"
WAITING: Final = "vllm:num_requests_waiting"
ERRORS: Final = "ovchat_request_errors_total"
# The 50th and the 95th percentile; None where nothing was observed.
Percentiles: TypeAlias = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """A model, on all servers together. Rates are by the second, and None until they are known.

    Attributes:
        name: Its name.
        servers: How many servers have it.
        ready: On how many of them it answers.
        running: Requests that run.
        waiting: Requests that wait.
        kv_cache: Part of the KV cache that is taken.
        prompt_tokens: Rate of tokens of prompts.
        generated_tokens: Rate of generated tokens.
        requests: Rate of requests that have finished.
        first_token: Seconds to the first token.
        between_tokens: Seconds between tokens.
        prefix_hits: Part of the prompts' tokens that the prefix cache had.
        preemptions: Since the servers started.
        restarts: Of its engine's process, likewise.
    """

    name: str
    servers: int
    ready: int
    running: int
    waiting: int
    kv_cache: float
    prompt_tokens: float | None
    generated_tokens: float | None
    requests: float | None
    first_token: Percentiles
    between_tokens: Percentiles
    prefix_hits: float | None
    preemptions: int
    restarts: int


@dataclass(frozen=True, slots=True)
class Figures:
    """All servers together.

    Attributes:
        versions: Those that run.
        uptime: Seconds since the start of the first server.
        servers: How many were heard of lately.
        replicas: How many there should be.
        lost: The numbers of those that were heard of before.
        running: Requests that run.
        waiting: Requests that wait.
        models: Each model.
        errors: Rate of errors by code, of those that there were; None until it is known.
        lag: 95th percentile of the event loop's lag, in seconds; None where nothing was observed.
    """

    versions: Sequence[str]
    uptime: float
    servers: int
    replicas: int
    lost: Sequence[int]
    running: int
    waiting: int
    models: Sequence[ModelFigures]
    errors: Mapping[str, float] | None
    lag: float | None


def figures(windows: Collection[Window]) -> Figures:
    """Return the figures of servers of which something is known."""
    alive = [window for window in windows if window.missed < LOST_AFTER]
    snapshots = [window.now for window in alive]
    now = total(snapshot.numbers for snapshot in snapshots)
    rates = total(window.rates() for window in alive)
    errors = {key.subject: rate for key, rate in rates.items() if key.family == ERRORS}
    models = [
        _model(name, sum(Key(READY, name) in each.numbers for each in snapshots), now, rates)
        for name in sorted(key.subject for key in now if key.family == READY)
    ]
    return Figures(
        versions=sorted({snapshot.version for snapshot in snapshots}),
        uptime=max((snapshot.uptime for snapshot in snapshots), default=0.0),
        servers=len(alive),
        replicas=max((window.now.replicas for window in windows), default=0),
        lost=[window.now.server for window in windows if window.missed >= LOST_AFTER],
        running=sum(model.running for model in models),
        waiting=sum(model.waiting for model in models),
        models=models,
        errors={code: rate for code, rate in errors.items() if rate} if rates else None,
        lag=quantile(0.95, buckets(rates, "ovchat_event_loop_lag_seconds")),
    )


def _model(name: str, servers: int, now: Numbers, rates: Numbers) -> ModelFigures:
    def count(family: str) -> int:
        return round(now.get(Key(family, name), 0.0))

    def rate(family: str) -> float | None:
        return rates.get(Key(family, name))

    def percentiles(family: str) -> Percentiles:
        found = buckets(rates, family, name)
        return quantile(0.5, found), quantile(0.95, found)

    asked, hits = rate("vllm:prefix_cache_queries_total"), rate("vllm:prefix_cache_hits_total")
    return ModelFigures(
        name=name,
        servers=servers,
        ready=count(READY),
        running=count(RUNNING),
        waiting=count(WAITING),
        # Each server has a cache of its own, as large as the others'.
        kv_cache=now.get(Key("vllm:kv_cache_usage_perc", name), 0.0) / servers,
        prompt_tokens=rate("vllm:prompt_tokens_total"),
        generated_tokens=rate("vllm:generation_tokens_total"),
        requests=rates.get(Key("vllm:e2e_request_latency_seconds", name, math.inf)),
        first_token=percentiles("vllm:time_to_first_token_seconds"),
        between_tokens=percentiles("vllm:inter_token_latency_seconds"),
        prefix_hits=(hits or 0.0) / asked if asked else None,
        preemptions=count("vllm:num_preemptions_total"),
        restarts=count("ovchat_engine_restarts_total"),
    )


def buckets(numbers: Numbers, family: str, subject: str = "") -> Mapping[float, float]:
    """Return the buckets of a histogram by their upper bounds, in ascending order."""
    found = {
        key.bound: count
        for key, count in numbers.items()
        if key.bound is not None and (key.family, key.subject) == (family, subject)
    }
    return dict(sorted(found.items()))


def quantile(fraction: float, buckets: Mapping[float, float]) -> float | None:
    """Return a quantile as Prometheus' histogram_quantile does; None if nothing was observed.

    Args:
        fraction: Which, from 0 to 1.
        buckets: Cumulative counts by ascending upper bounds, the last of which is infinite.
    """
    bounds, counts = [*buckets], [*buckets.values()]
    if not counts or counts[-1] <= 0:
        return None
    rank = fraction * counts[-1]
    index = bisect_left(counts, rank)
    low, below = (bounds[index - 1], counts[index - 1]) if index else (0.0, 0.0)
    if bounds[index] == math.inf:
        return low
    return low + (bounds[index] - low) * (rank - below) / (counts[index] - below)
