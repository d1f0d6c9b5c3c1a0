"""deploy/prometheus and deploy/grafana: Prometheus takes them, and they ask for what is there."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from ovchat_server.metrics.server_metrics import ServerMetrics
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.rest.conftest import Stack

# What `make setup` fetches.
PROMTOOL = ROOT / ".cache/promtool/promtool"
RULES = ROOT / "deploy/prometheus/ovchat.rules.yml"
COMPOSE = ROOT / "deploy/compose.yaml"
# Of the containers.
PROVISIONING = ROOT / "deploy/grafana/provisioning"
BOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/ovchat.json").read_text())
ALERTS: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
]
NAME = r"\b(?:vllm:|ovchat_|envoy_)\w+"
SELECTOR = re.compile(rf"({NAME})(?:\{{([^}}]*)\}})?")
LABEL = re.compile(r'(\w+)="([^"]*)"')
MATCHER = re.compile(r'(\w+)(=~|!=|=)"([^"]*)"')
# Lists of labels have no metrics.
LABEL_LIST = re.compile(r"\b(?:by|on) \([^)]*\)")


def strings(tree: Any, key: str) -> Iterator[str]:
    """The values of a key, anywhere in a tree."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == key and isinstance(value, str):
                yield value
            yield from strings(value, key)
    elif isinstance(tree, list):
        for item in tree:
            yield from strings(item, key)


EXPRESSIONS = [*strings(BOARD, "expr"), *(str(alert["expr"]) for alert in ALERTS)]


def promtool(*arguments: object, text: str = "") -> subprocess.CompletedProcess[str]:
    if not PROMTOOL.exists():
        pytest.skip("promtool could not be fetched: tests/promtool.sh says why")
    command = [str(PROMTOOL), *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def accepted(*arguments: object) -> None:
    ended = promtool(*arguments)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def scraped(stack: Stack) -> str:
    return httpx.get(f"http://127.0.0.1:{stack.metrics_port}/metrics", timeout=None).text


@pytest.mark.parametrize("expression", [*EXPRESSIONS, *strings(BOARD, "definition")])
def test_a_real_scrape_has_what_is_asked_for(scraped: str, expression: str) -> None:
    # Not prometheus-client's parser, to which all counters end in _total.
    samples = re.findall(r"^([\w:]+)(?:\{(.*)\})? ", scraped, re.MULTILINE)
    # Prometheus makes this one itself.
    if expression.startswith("up{"):
        return
    asked = SELECTOR.findall(LABEL_LIST.sub("", expression))
    assert asked
    for name, matchers in asked:
        found = [dict(LABEL.findall(labels)) for sample, labels in samples if sample == name]
        assert found, name
        for label, relation, value in MATCHER.findall(matchers):
            # Prometheus adds the instance.
            assert label == "instance" or label in found[0], name
            if relation == "=":
                assert any(labels[label] == value for labels in found), (name, value)


def test_alerts_name_codes_that_errors_have() -> None:
    codes = {code for code, _ in ServerMetrics(1).errors}
    [named] = re.findall(r'code=~"([^"]*)"', " ".join(EXPRESSIONS))
    assert set(named.split("|")) <= codes


def test_prometheus_reads_a_scrape(scraped: str) -> None:
    ended = promtool("check", "metrics", text=scraped)
    # 3: it is valid, and not all is as Prometheus would name it.
    assert ended.returncode in (0, 3), ended.stderr
    ours = [line for line in ended.stderr.splitlines() if not line.startswith("envoy_")]
    # Those names are vLLM's.
    assert [line for line in ours if not line.endswith("should not contain ':'")] == []


def test_prometheus_takes_its_configuration() -> None:
    accepted("check", "config", ROOT / "deploy/prometheus/prometheus.yml")
    accepted("check", "rules", RULES)


def test_each_alert_fires_when_it_should() -> None:
    tests = ROOT / "tests/data/alerts.yml"
    assert {*strings(yaml.safe_load(tests.read_text()), "alertname")} == {
        alert["alert"] for alert in ALERTS
    }
    accepted("test", "rules", tests)


def test_prometheus_understands_the_dashboard(tmp_path: Any) -> None:
    rules = [
        {"record": f"panel_{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(strings(BOARD, "expr"))
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    accepted("check", "rules", file)


def test_the_dashboard_is_whole() -> None:
    assert BOARD["schemaVersion"] >= 39
    variables = {variable["name"] for variable in BOARD["templating"]["list"]}
    used = {name for text in EXPRESSIONS for name in re.findall(r"\$(\w+)", text)}
    assert used - {"labels", "value"} == {"instance", "server", "model_name", "__rate_interval"}
    assert variables == {"datasource", "instance", "server", "model_name"}
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    fields = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in panels
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    # None covers another, and none is wider than the page.
    assert len({*fields}) == len(fields)
    assert max(x for x, _ in fields) == 23


def test_compose_mounts_what_there_is() -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    monitoring = {name for name, item in services.items() if item.get("profiles")}
    assert monitoring == {"prometheus", "grafana"}
    for name in monitoring:
        for volume in services[name]["volumes"]:
            assert (COMPOSE.parent / volume.split(":")[0]).exists()
        # Not for everybody who reaches the machine.
        assert all(port.startswith("127.0.0.1:") for port in services[name]["ports"])
    assert not any("9464" in port for port in services["server"]["ports"])
    [datasource] = yaml.safe_load((PROVISIONING / "datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    assert datasource["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load((PROVISIONING / "dashboards/ovchat.yml").read_text())["providers"]
    mounted = services["grafana"]["volumes"][-1].split(":")[1]
    assert mounted.startswith(provider["options"]["path"])
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    [target] = config["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target == "server:9464"
