"""docs/metrics.md has every metric, as it is exposed."""

from __future__ import annotations

import re

from prometheus_client.parser import text_string_to_metric_families as parse

from ovchat_server.metrics.merged import answered
from ovchat_server.metrics.server_metrics import ServerMetrics
from tests.conftest import ROOT
from tests.unit.serving_tools import served

PAGE = (ROOT / "docs/metrics.md").read_text()
ROW = re.compile(r"^\| `((?:vllm:|ovchat_)\w+)` \| (\w+) \| (.*?) \| (.*) \|$", re.MULTILINE)


def exposed() -> dict[str, tuple[str, set[str], str]]:
    """Of each metric its type, its labels and its text."""
    metrics = ServerMetrics(1)
    metrics.generation("demo")
    metrics.served = [served()]
    text = (metrics.exposition() + answered([True])).decode()
    found = {}
    for family in parse(text):
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = (family.type, labels, family.documentation)
    return found


def test_the_page_and_the_families_agree() -> None:
    rows = {name: (kind, labels, text) for name, kind, labels, text in ROW.findall(PAGE)}
    families = exposed()
    assert sorted(rows) == sorted(families)
    for name, (kind, labels, text) in families.items():
        said_kind, said_labels, said_text = rows[name]
        assert said_kind == kind
        assert set(re.findall(r"`(\w+)`", said_labels)) == labels, name
        assert said_text.startswith(text), name
