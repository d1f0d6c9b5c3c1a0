"""From prometheus-client's metrics to messages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ovchat.v1 import metric_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prometheus_client import Metric
    from prometheus_client.samples import Sample

TYPES = {
    "counter": metric_pb2.METRIC_TYPE_COUNTER,
    "gauge": metric_pb2.METRIC_TYPE_GAUGE,
    "histogram": metric_pb2.METRIC_TYPE_HISTOGRAM,
}
# Who calls how often is for the operator, who reads Prometheus' metrics; every caller may ask here.
HIDDEN = "key"
BOUND = "le"


def family(metric: Metric) -> metric_pb2.MetricFamily:
    """Return the metrics of one name; those that differ only in what is hidden become one."""
    # prometheus-client leaves it out, as OpenMetrics does.
    suffix = "_total" if metric.type == "counter" else ""
    made = metric_pb2.MetricFamily(
        name=metric.name + suffix, help=metric.documentation, type=TYPES[metric.type]
    )
    by_labels: dict[frozenset[tuple[str, str]], metric_pb2.Metric] = {}
    for sample in metric.samples:
        labels = _shown(sample.labels)
        key = frozenset(labels.items())
        if key not in by_labels:
            by_labels[key] = made.metrics.add(labels=labels)
        if metric.type == "histogram":
            _add(by_labels[key].histogram, sample, sample.name.removeprefix(metric.name))
        else:
            by_labels[key].value += sample.value
    return made


def _shown(labels: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in labels.items() if name not in (HIDDEN, BOUND)}


def _add(histogram: metric_pb2.Histogram, sample: Sample, part: str) -> None:
    if part == "_bucket":
        bound = sample.labels[BOUND]
        histogram.buckets.add(
            upper_bound=math.inf if bound == "+Inf" else float(bound),
            cumulative_count=int(sample.value),
        )
    elif part == "_count":
        histogram.count = int(sample.value)
    else:
        histogram.sum = sample.value
