"""The names of metrics, and where their numbers are.

vLLM's names and labels where it has the number, so that its dashboards, autoscalers and routers
(KEDA, llm-d, the Gateway API inference extension) work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from ovchat_server.domain.models import ModelState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client import Metric

    from ovchat_server.engine.contract.observer import EngineUsage
    from ovchat_server.metrics.histogram import Histogram
    from ovchat_server.metrics.model_metrics import ModelMetrics
    from ovchat_server.metrics.server_metrics import ServerMetrics

MODEL_LABELS: Final = ("model_name", "server")


OfT = TypeVar("OfT")
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class _Row(Generic[OfT, ValueT]):
    """A metric's name and text, and where its value is."""

    name: str
    text: str
    value: Callable[[OfT], ValueT]


_GAUGES: Final[Sequence[_Row[EngineUsage, float]]] = (
    _Row("vllm:num_requests_running", "Requests in the batch.", lambda now: now.running),
    _Row("vllm:num_requests_waiting", "Requests that wait.", lambda now: now.waiting),
    _Row(
        "vllm:kv_cache_usage_perc",
        "Part of the KV cache that is taken; 1 is all of it.",
        lambda now: now.used_kv_blocks / now.total_kv_blocks if now.total_kv_blocks else 0.0,
    ),
)
_COUNTERS: Final[Sequence[_Row[ModelMetrics[Any], float]]] = (
    _Row("vllm:prompt_tokens", "Tokens of prompts.", lambda of: of.prompt_tokens),
    _Row("vllm:generation_tokens", "Generated tokens.", lambda of: of.generation_tokens),
    _Row(
        "vllm:prefix_cache_queries",
        "Tokens of prompts that were looked up in the prefix cache.",
        lambda of: of.cache_queries,
    ),
    _Row(
        "vllm:prefix_cache_hits",
        "Tokens of prompts that the prefix cache had.",
        lambda of: of.cache_hits,
    ),
    _Row(
        "vllm:num_preemptions",
        "How often a sequence gave up its KV blocks, to be resumed later.",
        lambda of: of.preemptions,
    ),
    _Row(
        "ovchat_engine_restarts",
        "How often a process of the model was started again: its engine, or its image encoder.",
        lambda of: of.restarts,
    ),
    _Row(
        "ovchat_resumed_requests",
        "Requests that went on in another process when the engine's had died.",
        lambda of: of.resumed_requests,
    ),
)
_HISTOGRAMS: Final[Sequence[_Row[ModelMetrics[Any], Histogram]]] = (
    _Row(
        "vllm:time_to_first_token_seconds",
        "From a request's arrival to its first token.",
        lambda of: of.first_token,
    ),
    _Row(
        "vllm:inter_token_latency_seconds",
        "Between two outputs of a sequence: of one token, or several that were speculated.",
        lambda of: of.gaps,
    ),
    _Row(
        "vllm:e2e_request_latency_seconds",
        "From a request's arrival to its last token.",
        lambda of: of.whole,
    ),
    _Row(
        "vllm:request_queue_time_seconds",
        "How long a request waited for its admission.",
        lambda of: of.queue,
    ),
    _Row(
        "vllm:request_prefill_time_seconds",
        "From a request's admission to its first token.",
        lambda of: of.prefill,
    ),
    _Row(
        "vllm:request_decode_time_seconds",
        "From a request's first token to its last.",
        lambda of: of.decode,
    ),
    _Row(
        "vllm:request_prompt_tokens",
        "Tokens of a request's prompts.",
        lambda of: of.prompt_length,
    ),
    _Row(
        "vllm:request_generation_tokens",
        "Tokens of a request's choices.",
        lambda of: of.generation_length,
    ),
    _Row("ovchat_step_duration_seconds", "A step of the engine.", lambda of: of.steps),
    _Row(
        "ovchat_batch_size",
        "Sequences, or texts, that a step had output of.",
        lambda of: of.batch,
    ),
)


def families(metrics: ServerMetrics) -> Iterator[Metric]:
    """Yield all metrics with their numbers now."""
    models = [((name, metrics.server), model) for name, model in metrics.models.items()]
    usages = [(labels, model.usage()) for labels, model in models]
    for gauge in _GAUGES:
        gauges = GaugeMetricFamily(gauge.name, gauge.text, labels=MODEL_LABELS)
        for labels, usage in usages:
            gauges.add_metric(labels, gauge.value(usage))
        yield gauges
    yield _cache_config(usages)
    ready = GaugeMetricFamily("ovchat_model_ready", "1 if the model answers.", labels=MODEL_LABELS)
    for served in metrics.served:
        ready.add_metric((served.id, metrics.server), served.status.state is ModelState.READY)
    yield ready
    for counter in _COUNTERS:
        counters = CounterMetricFamily(counter.name, counter.text, labels=MODEL_LABELS)
        for labels, model in models:
            counters.add_metric(labels, counter.value(model))
        yield counters
    finished = CounterMetricFamily(
        "vllm:request_success",
        "Choices that ended, and why.",
        labels=(*MODEL_LABELS, "finished_reason"),
    )
    for labels, model in models:
        for reason, count in model.finished.items():
            finished.add_metric((*labels, reason), count)
    yield finished
    for histogram in _HISTOGRAMS:
        histograms = HistogramMetricFamily(histogram.name, histogram.text, labels=MODEL_LABELS)
        for labels, model in models:
            _add(histograms, labels, histogram.value(model))
        yield histograms
    yield from _of_the_server(metrics)


def _of_the_server(metrics: ServerMetrics) -> Iterator[Metric]:
    errors = CounterMetricFamily(
        "ovchat_request_errors",
        "Requests that were refused or failed, by the error's code and the client's API key.",
        labels=("code", "key", "server"),
    )
    for (code, key), count in [*metrics.errors.items()]:
        errors.add_metric((code, key, metrics.server), count)
    yield errors
    lag = HistogramMetricFamily(
        "ovchat_event_loop_lag_seconds",
        "How late the server's event loop was.",
        labels=("server",),
    )
    _add(lag, (metrics.server,), metrics.lag)
    yield lag


def _cache_config(usages: Sequence[tuple[tuple[str, str], EngineUsage]]) -> Metric:
    config = GaugeMetricFamily(
        "vllm:cache_config_info",
        "The KV cache: tokens of a block, and blocks (under vLLM's name, also of a CPU).",
        labels=(*MODEL_LABELS, "block_size", "num_gpu_blocks"),
    )
    for labels, usage in usages:
        size = (str(usage.kv_block_size), str(usage.total_kv_blocks))
        config.add_metric((*labels, *size), 1.0)
    return config


def _add(family: HistogramMetricFamily, labels: Sequence[str], histogram: Histogram) -> None:
    family.add_metric(labels, buckets=histogram.buckets, sum_value=histogram.sum)
