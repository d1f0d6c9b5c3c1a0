"""What is counted of requests and steps, without an engine."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat_server.domain.completion import FinishReason
from ovchat_server.domain.errors import InternalError, InvalidRequestError, OverloadedError
from ovchat_server.domain.identity import Identity
from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.contract.generation_messages import SequenceOutput
from ovchat_server.engine.contract.messages import Report
from ovchat_server.engine.contract.times import RequestTimes
from ovchat_server.metrics.histogram import Histogram
from ovchat_server.metrics.server_metrics import ServerMetrics
from ovchat_server.serving.record import RequestRecord

# What autoscalers, routers and dashboards read of vLLM.
OF_VLLM = {
    "vllm:num_requests_running": "gauge",
    "vllm:num_requests_waiting": "gauge",
    "vllm:kv_cache_usage_perc": "gauge",
    "vllm:cache_config_info": "gauge",
    "vllm:prompt_tokens": "counter",
    "vllm:generation_tokens": "counter",
    "vllm:request_success": "counter",
    "vllm:prefix_cache_queries": "counter",
    "vllm:prefix_cache_hits": "counter",
    "vllm:num_preemptions": "counter",
    "vllm:time_to_first_token_seconds": "histogram",
    "vllm:inter_token_latency_seconds": "histogram",
    "vllm:e2e_request_latency_seconds": "histogram",
    "vllm:request_queue_time_seconds": "histogram",
    "vllm:request_prefill_time_seconds": "histogram",
    "vllm:request_decode_time_seconds": "histogram",
    "vllm:request_prompt_tokens": "histogram",
    "vllm:request_generation_tokens": "histogram",
}
WHOLE = RequestTimes(1.0, 1.5, 3.5, 7.5)
STOP, LENGTH, CALLS = FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS


def record(**fields: Any) -> RequestRecord:
    known: dict[str, Any] = {"began": 0.5, "ended": 9.0, "status": "OK", "model": "demo"}
    return RequestRecord(**known | {"choices": 1, "times": WHOLE} | fields)


def counts(histogram: Histogram) -> dict[str, float]:
    """Of each bucket its own, without empty ones."""
    before, own = 0.0, {}
    for bound, total in histogram.buckets:
        if total > before:
            own[bound] = total - before
        before = total
    return own


def test_a_histogram_takes_equal_values_at_once() -> None:
    histogram = Histogram((0.1, 1.0))
    histogram.observe(0.1, 64)
    histogram.observe(0.2)
    histogram.observe(5.0, 2)
    histogram.observe(None, 7)
    assert histogram.buckets == [("0.1", 64), ("1.0", 65), ("+Inf", 67)]
    assert histogram.sum == pytest.approx(6.4 + 0.2 + 10.0)


def test_the_names_are_vllms() -> None:
    metrics = ServerMetrics(1)
    metrics.generation("demo")
    found = {family.name: family.type for family in metrics.collect()}
    assert {name: found.get(name) for name in OF_VLLM} == OF_VLLM
    assert all(name.startswith("ovchat_") for name in found.keys() - OF_VLLM.keys())


@pytest.mark.parametrize(
    ("ended", "finished"),
    [
        (record(finish_reasons=[STOP]), {"stop": 1}),
        (record(finish_reasons=[LENGTH]), {"length": 1}),
        # vLLM's engine knows nothing of calls.
        (record(finish_reasons=[CALLS]), {"stop": 1}),
        (record(finish_reasons=[STOP, LENGTH], choices=2), {"stop": 1, "length": 1}),
        (record(status="CANCELLED"), {"abort": 1}),
        (record(finish_reasons=[STOP], choices=3, status="CANCELLED"), {"stop": 1, "abort": 2}),
        (record(error=InternalError("broken")), {"error": 1}),
        # Its engine was not asked, or did not take it.
        (record(error=OverloadedError("full"), times=RequestTimes()), {}),
        (record(error=OverloadedError("late"), times=RequestTimes(queued=1.0)), {}),
        (record(model="nobody", finish_reasons=[STOP]), {}),
        (record(model="", finish_reasons=[STOP]), {}),
    ],
)
def test_a_choice_ends_once_for_one_reason(ended: RequestRecord, finished: dict[str, int]) -> None:
    metrics = ServerMetrics(1)
    counted = metrics.generation("demo")
    metrics.end(ended)
    assert counted.finished == {"stop": 0, "length": 0, "abort": 0, "error": 0} | finished


def test_times_are_those_of_the_engine_from_the_requests_arrival() -> None:
    metrics = ServerMetrics(1)
    counted = metrics.generation("demo")
    metrics.end(record(finish_reasons=[STOP], prompt_tokens=7, completion_tokens=30))
    sums = {
        "first_token": 3.0,
        "whole": 7.0,
        "queue": 0.5,
        "prefill": 2.0,
        "decode": 4.0,
        "prompt_length": 7,
        "generation_length": 30,
    }
    assert {name: getattr(counted, name).sum for name in sums} == sums


def test_what_was_not_answered_in_full_has_no_length_and_no_latency() -> None:
    metrics = ServerMetrics(1)
    counted = metrics.generation("demo")
    metrics.end(record(status="CANCELLED", completion_tokens=30))
    assert [counted.queue.sum, counted.first_token.sum] == [0.5, 3.0]
    rest = (counted.whole, counted.prefill, counted.decode, counted.generation_length)
    assert [histogram.sum for histogram in rest] == [0, 0, 0, 0]


def test_a_step_counts_its_sequences_tokens_and_gaps() -> None:
    counted = ServerMetrics(1).generation("demo")
    outputs = [SequenceOutput(index, 0, [1, 2], [], None) for index in range(3)]
    report = Report(outputs, EngineLoad(), [], [7, 8], began=10.0, ended=10.04)
    counted.stepped(report, {0.04: 2, 1.5: 1})
    # Commands were taken without a step.
    counted.stepped(Report([], EngineLoad()), {})
    assert (counted.generation_tokens, counted.preemptions) == (6, 2)
    assert counts(counted.batch) == {"4.0": 1}
    assert counts(counted.gaps) == {"0.05": 2, "2.5": 1}
    assert counts(counted.steps) == {"0.05": 1}


@pytest.mark.parametrize(
    ("code", "counted"),
    [
        ("context_length_exceeded", "context_length_exceeded"),
        ("anything that a provider said", "invalid_value"),
    ],
)
def test_errors_are_counted_by_the_codes_that_ovchat_has(code: str, counted: str) -> None:
    metrics = ServerMetrics(1)
    error = InvalidRequestError("wrong")
    error.code = code
    before = len(metrics.errors)
    metrics.end(record(error=error, caller=Identity("a", "0123abcd")))
    assert metrics.errors[counted, "0123abcd"] == 1
    assert len(metrics.errors) == before + 1


def test_the_beams_of_a_search_are_one_in_a_batch() -> None:
    counted = ServerMetrics(1).generation("demo")
    outputs = [SequenceOutput(7, beam, [1], [], "stop") for beam in range(4)]
    counted.stepped(Report(outputs, EngineLoad(), began=1.0, ended=1.1), {})
    assert counts(counted.batch) == {"1.0": 1}


def test_a_batch_that_is_only_announced_is_no_step() -> None:
    counted = ServerMetrics(1).pooling("bert")
    counted.stepped(Report([], EngineLoad(), [1], began=1.0, ended=1.1), {})
    assert counts(counted.steps) == {}
