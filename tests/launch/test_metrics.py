"""One scrape of `ovchat up` has the metrics of all servers, whatever becomes of one."""

from __future__ import annotations

import asyncio
import re
import signal
from typing import TYPE_CHECKING

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from tests.launch.stack import POLL, Stack, running, send

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOKENS = "vllm:generation_tokens_total"
PROVIDER = """
[[providers]]
name = "away"
base_url = "http://127.0.0.1:9"
models = ["one"]
"""


async def scrape(stack: Stack) -> str:
    async with httpx.AsyncClient(timeout=None) as http:
        answer = await http.get(stack.metrics_url)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return answer.text


async def until(stack: Stack, holds: Callable[[str], bool]) -> str:
    """The first scrape of which something holds."""
    while True:
        if holds(text := await scrape(stack)):
            return text
        await asyncio.sleep(POLL)


def by_server(text: str, name: str) -> dict[str, float]:
    """The values that a metric has, by server."""
    samples = [sample for family in parse(text) for sample in family.samples]
    return {sample.labels["server"]: sample.value for sample in samples if sample.name == name}


def up_is(*values: int) -> Callable[[str], bool]:
    wanted = {str(number): value for number, value in enumerate(values, start=1)}
    return lambda text: by_server(text, "ovchat_up") == wanted


async def test_one_scrape_has_every_server_and_envoy(tmp_path: Path) -> None:
    async with running(tmp_path, "--replicas", "2") as stack:
        text = await until(stack, up_is(1, 1))
        kinds = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
        assert len(kinds) == len({*kinds})
        assert 'envoy_http_downstream_rq_active{envoy_http_conn_manager_prefix="rest"} ' in text
        assert by_server(text, "ovchat_model_ready") == {"1": 1, "2": 1}
        assert by_server(text, TOKENS) == {"1": 0, "2": 0}

        await stack.answers()
        # Of 3 tokens, by one of them.
        counted = by_server(await scrape(stack), TOKENS)
        assert sorted(counted.values()) == [0, 3]

        first, second = stack.processes("server")
        send(first, signal.SIGSTOP)
        text = await until(stack, lambda text: sum(by_server(text, "ovchat_up").values()) == 1)
        [[answers, tokens]] = by_server(text, TOKENS).items()
        assert by_server(text, "ovchat_up")[answers] == 1
        assert tokens == counted[answers]
        assert "envoy_server_live" in text
        send(first, signal.SIGCONT)
        await until(stack, up_is(1, 1))

        send(second, signal.SIGKILL)
        await until(stack, lambda text: sum(by_server(text, "ovchat_up").values()) == 1)
        await stack.says("serves again")
        text = await until(stack, up_is(1, 1))
        assert set(by_server(text, TOKENS)) == {"1", "2"}
        stack.process.send_signal(signal.SIGINT)
        assert await stack.ends() == 0


@pytest.mark.slow
async def test_without_envoy_the_servers_metrics_are_there(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        [envoy] = stack.processes("envoy")
        send(envoy, signal.SIGSTOP)
        text = await until(stack, up_is(1))
        assert by_server(text, TOKENS) == {"1": 0}
        assert "envoy_" not in text
        send(envoy, signal.SIGCONT)
        stack.process.send_signal(signal.SIGINT)
        assert await stack.ends() == 0


@pytest.mark.slow
async def test_providers_alone_have_metrics_of_the_server(tmp_path: Path) -> None:
    config = tmp_path / "providers.toml"
    config.write_text(PROVIDER)
    async with running(tmp_path, "--config", str(config)) as stack:
        text = await until(stack, up_is(1))
        assert by_server(text, "ovchat_event_loop_lag_seconds_count").keys() == {"1"}
        assert by_server(text, TOKENS) == {}
        stack.process.send_signal(signal.SIGINT)
        assert await stack.ends() == 0
