"""`ovchat top`: from what servers answer to what is shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from ovchat.v1 import metric_pb2, server_service_pb2
from ovchat_server.top.figures import LOST_AFTER, Figures, figures, quantile
from ovchat_server.top.snapshots import Key, Snapshot, Window, heard
from ovchat_server.top.view import view

if TYPE_CHECKING:
    from collections.abc import Mapping

READY = Key("ovchat_model_ready", "demo")
RUNNING = Key("vllm:num_requests_running", "demo")
WAITING = Key("vllm:num_requests_waiting", "demo")
CACHE = Key("vllm:kv_cache_usage_perc", "demo")
GENERATED = Key("vllm:generation_tokens_total", "demo")
FIRST_TOKEN = "vllm:time_to_first_token_seconds"
ERROR = Key("ovchat_request_errors_total", "overloaded")


def snapshot(
    numbers: Mapping[Key, float],
    server: int = 1,
    *,
    uptime: float = 10.0,
    start_time: float = 1000.0,
    replicas: int = 1,
) -> Snapshot:
    return Snapshot(server, replicas, "1.0", start_time, uptime, {READY: 1.0, **numbers})


def between(
    before: Mapping[Key, float],
    now: Mapping[Key, float],
    *,
    uptime: float = 12.0,
    start_time: float = 1000.0,
) -> Figures:
    """Of one server, two seconds later."""
    later = snapshot(now, uptime=uptime, start_time=start_time)
    return figures([Window(later, snapshot(before))])


@pytest.mark.parametrize(
    ("fraction", "counts", "expected"),
    [
        # Prometheus' own examples: linear within the bucket, from 0 within the first one.
        (0.5, {1.0: 10, 2.0: 10, math.inf: 10}, 0.5),
        (0.5, {1.0: 0, 2.0: 10, math.inf: 10}, 1.5),
        (0.95, {1.0: 50, 2.0: 90, 4.0: 100, math.inf: 100}, 3.0),
        (0.5, {1.0: 50, 2.0: 90, 4.0: 100, math.inf: 100}, 1.0),
        # Beyond the last bound nothing is known but that bound.
        (0.95, {1.0: 5, 2.0: 5, math.inf: 10}, 2.0),
        (0.5, {1.0: 0, 2.0: 0, math.inf: 0}, None),
        (0.5, {}, None),
    ],
)
def test_a_quantile_is_that_of_prometheus(
    fraction: float, counts: Mapping[float, float], expected: float | None
) -> None:
    assert quantile(fraction, counts) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("before", "now", "again", "rate"),
    [
        ({GENERATED: 100}, {GENERATED: 150}, {}, 25),
        ({GENERATED: 100}, {GENERATED: 100}, {}, 0),
        # A model that was not there, as after a new configuration.
        ({}, {GENERATED: 30}, {}, 15),
        # It was started again 4 seconds ago, and has counted from zero.
        ({GENERATED: 100}, {GENERATED: 40}, {"start_time": 1007.0, "uptime": 4.0}, 10),
        ({GENERATED: 100}, {GENERATED: 120}, {"start_time": 1007.0, "uptime": 4.0}, 30),
    ],
)
def test_a_rate_is_by_the_seconds_between_two_answers(
    before: Mapping[Key, float], now: Mapping[Key, float], again: Mapping[str, float], rate: float
) -> None:
    [model] = between(before, now, **again).models
    assert model.generated_tokens == rate


def test_percentiles_are_those_of_the_interval_alone() -> None:
    def numbers(*counts: int) -> Mapping[Key, float]:
        bounds = (0.1, 0.2, math.inf)
        return {
            Key(FIRST_TOKEN, "demo", bound): float(count)
            for bound, count in zip(bounds, counts, strict=True)
        }

    [model] = between(numbers(90, 90, 90), numbers(90, 100, 100)).models
    assert model.first_token == (pytest.approx(0.15), pytest.approx(0.195))
    [idle] = between(numbers(90, 100, 100), numbers(90, 100, 100)).models
    assert idle.first_token == (None, None)


def test_errors_are_those_that_there_were() -> None:
    other = Key("ovchat_request_errors_total", "model_not_found")
    assert between({ERROR: 1, other: 5}, {ERROR: 4, other: 5}).errors == {"overloaded": 1.5}


def test_prefix_hits_are_a_part_of_the_tokens_that_were_looked_up() -> None:
    queries = Key("vllm:prefix_cache_queries_total", "demo")
    hits = Key("vllm:prefix_cache_hits_total", "demo")
    [model] = between({queries: 100, hits: 100}, {queries: 140, hits: 110}).models
    assert model.prefix_hits == 0.25
    [idle] = between({queries: 100, hits: 50}, {queries: 100, hits: 50}).models
    assert idle.prefix_hits is None


def test_servers_are_added_up_each_over_its_own_time() -> None:
    first = {RUNNING: 2.0, WAITING: 1.0, CACHE: 0.5, GENERATED: 100.0}
    second = {RUNNING: 3.0, WAITING: 0.0, CACHE: 0.1, GENERATED: 900.0, READY: 0.0}
    found = figures(
        [
            Window(
                snapshot({**first, GENERATED: 140.0}, 1, uptime=14, replicas=3), snapshot(first)
            ),
            Window(
                snapshot({**second, GENERATED: 960.0}, 2, uptime=12, replicas=3),
                snapshot(second, 2),
            ),
        ]
    )
    [model] = found.models
    assert (model.running, model.waiting, model.kv_cache) == (5, 1, pytest.approx(0.3))
    assert (model.servers, model.ready) == (2, 1)
    assert model.generated_tokens == 40 / 4 + 60 / 2
    assert (found.servers, found.replicas, found.running, found.uptime) == (2, 3, 5, 14)


def test_a_server_that_is_not_heard_for_some_time_is_lost_and_not_counted() -> None:
    windows: dict[int, Window] = {}
    both = [snapshot({RUNNING: float(server)}, server, replicas=2) for server in (1, 2)]
    windows = heard(windows, both)
    lost = []
    for _ in range(LOST_AFTER):
        windows = heard(windows, both[:1])
        found = figures(windows.values())
        lost.append((found.running, [*found.lost]))
    assert lost == [(3, []), (3, []), (1, [2])]
    # It is back, and what it counted meanwhile is known.
    windows = heard(windows, [snapshot({RUNNING: 2, GENERATED: 80}, 2, uptime=20, replicas=2)])
    found = figures(windows.values())
    assert (found.running, found.lost, found.models[0].generated_tokens) == (3, [], 8)


def test_servers_that_there_are_no_more_are_forgotten() -> None:
    windows = heard({}, [snapshot({}, server, replicas=3) for server in (1, 2, 3)])
    windows = heard(windows, [snapshot({}, 1, replicas=1)])
    assert [*windows] == [1]


def test_an_answer_becomes_numbers_by_model_by_code_and_by_bucket() -> None:
    histogram = metric_pb2.Histogram(
        buckets=[
            metric_pb2.HistogramBucket(upper_bound=bound, cumulative_count=count)
            for bound, count in ((1.0, 3), (math.inf, 4))
        ]
    )
    families = [
        metric_pb2.MetricFamily(name=name, metrics=metrics)
        for name, metrics in (
            (
                "by_model",
                [
                    metric_pb2.Metric(
                        labels={"model_name": "demo", "finished_reason": reason}, value=2
                    )
                    for reason in ("stop", "length")
                ],
            ),
            ("by_code", [metric_pb2.Metric(labels={"code": "overloaded"}, value=0)]),
            ("sizes", [metric_pb2.Metric(labels={"server": "2"}, histogram=histogram)]),
            ("nothing", []),
        )
    ]
    answer = server_service_pb2.GetMetricsResponse(
        families=families, server=2, replicas=3, version="1.0", start_time=5.0, uptime=6.0
    )
    assert Snapshot.of(answer) == Snapshot(
        2,
        3,
        "1.0",
        5.0,
        6.0,
        {
            Key("by_model", "demo"): 4.0,
            Key("by_code", "overloaded"): 0.0,
            Key("sizes", "", 1.0): 3.0,
            Key("sizes", "", math.inf): 4.0,
        },
    )


def drawn(found: Figures, trouble: str = "", *, width: int = 200) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(view("host:1", found, trouble))
    return capture.get()


def test_what_is_not_known_yet_is_a_dash() -> None:
    text = drawn(figures([Window(snapshot({RUNNING: 1}))]))
    assert text.splitlines()[0] == (
        "host:1   ovchat 1.0   up 0:00:10   servers 1   running 1   waiting 0"
    )
    [row] = [line for line in text.splitlines() if line.startswith("demo")]
    assert row.split() == ["demo", "ready", "1", "0", "0%", *"------", "0", "0"]
    assert "errors/s: -" in text


def test_a_narrow_terminal_has_the_first_columns_and_names_the_others() -> None:
    wide, narrow = (
        drawn(figures([Window(snapshot({}))]), width=width).splitlines() for width in (200, 80)
    )
    assert any(line.endswith("restarts") for line in wide)
    assert not any(line.startswith("A wider terminal") for line in wide)
    assert any("TTFT" in line for line in narrow)
    assert any(line.startswith("A wider terminal has: ") for line in narrow)
    assert max(map(len, narrow)) <= 80


def test_what_a_server_tells_cannot_steer_the_terminal() -> None:
    evil = {Key("ovchat_model_ready", "\x1b[2J[red]x"): 1.0}
    text = drawn(figures([Window(snapshot(evil))]), "\x1b]0;title\x07")
    assert "?[2J[red]x" in text
    assert "?]0;title?" in text


def test_lost_servers_and_trouble_are_told() -> None:
    windows = [
        Window(snapshot({}, 1, replicas=2)),
        Window(snapshot({}, 2, replicas=2), missed=LOST_AFTER),
    ]
    text = drawn(figures(windows), "host:1 cannot be asked")
    assert "servers 1 of 2" in text
    assert "lost: server 2" in text
    assert text.splitlines()[-1] == "host:1 cannot be asked"
    # Nothing is known at all.
    assert drawn(figures([]), "no").split() == ["host:1", "no"]
