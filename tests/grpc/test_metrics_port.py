"""GET /metrics of one server, on its port or its socket."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from ovchat_server.app import Server
from ovchat_server.start_error import StartError
from tests.grpc.conftest import running
from tests.grpc.requests import successor as request
from tests.ports import unused_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.settings import ModelSettings, Settings


async def refused(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


async def test_metrics_are_where_the_log_says(
    make_settings: Callable[..., Settings],
    successor: ModelSettings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with running(Server(make_settings(successor))) as client:
        await client.chat.CreateChatCompletion(request("a", 3))
        url = str(client.server.metrics_url)
        assert f"Metrics are on {url}" in caplog.messages
        async with httpx.AsyncClient(timeout=None) as http:
            answer = await http.get(url)
            others = [await http.get(url.replace("/metrics", path)) for path in ("/", "/metrics/x")]
            posted = await http.post(url)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in parse(answer.text)}
    [tokens] = families["vllm:generation_tokens"].samples
    assert tokens.labels == {"model_name": "successor", "server": "1"}
    assert tokens.value == 3
    assert [other.status_code for other in others] == [404, 404]
    assert posted.status_code == 405
    assert await refused(httpx.URL(url).port or 0)


async def test_a_port_that_is_taken_is_named(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    port = unused_port()
    settings = make_settings(successor, metrics_port=port)
    async with Server(settings).running():
        with pytest.raises(StartError, match=f"^port {port} is already in use: .*--metrics-port$"):
            async with Server(settings).running():
                pass
    assert await refused(port)


async def test_a_start_that_fails_leaves_the_port(
    make_settings: Callable[..., Settings],
    successor: ModelSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("ovchat_server.app.publish_health", fail)
    port = unused_port()
    with pytest.raises(RuntimeError):
        async with Server(make_settings(successor, metrics_port=port)).running():
            pass
    assert await refused(port)


async def test_a_socket_takes_the_place_of_the_port(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    port = unused_port()
    name = f"@ovchat-test-{port}"
    settings = make_settings(successor, metrics_port=port, metrics_socket=name, server_number=7)
    server = Server(settings)
    async with server.running():
        assert server.metrics_url is None
        assert await refused(port)
        transport = httpx.AsyncHTTPTransport(uds="\0" + name[1:])
        async with httpx.AsyncClient(transport=transport, timeout=None) as http:
            text = (await http.get("http://server/metrics")).text
        assert 'vllm:num_requests_waiting{model_name="successor",server="7"} 0.0' in text
        with pytest.raises(StartError, match=f"^socket {name}: Address already in use$"):
            async with Server(settings).running():
                pass
