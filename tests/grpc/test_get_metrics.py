"""What a server tells of its numbers, to any caller."""

from __future__ import annotations

import math
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest

from ovchat.v1 import metric_pb2, server_service_pb2
from ovchat_server.app import Server
from tests.grpc.conftest import running
from tests.grpc.engines import until
from tests.grpc.requests import ask
from tests.keys import api_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.settings import ModelSettings, Settings
    from tests.grpc.conftest import Client

REQUEST = server_service_pb2.GetMetricsRequest()
KEY = (("authorization", "Bearer first"),)


def metrics(
    response: server_service_pb2.GetMetricsResponse, name: str, **labels: str
) -> list[metric_pb2.Metric]:
    """Those of a name that have some labels."""
    [family] = [family for family in response.families if family.name == name]
    return [metric for metric in family.metrics if labels.items() <= metric.labels.items()]


def value(response: server_service_pb2.GetMetricsResponse, name: str, **labels: str) -> float:
    [metric] = metrics(response, name, **labels)
    return metric.value


async def test_the_numbers_after_a_chat_are_those_of_its_usage(
    make_settings: Callable[..., Settings], demo: ModelSettings
) -> None:
    async with running(Server(make_settings(demo))) as client:
        before = await client.server_service.GetMetrics(REQUEST)
        answer = await client.chat.CreateChatCompletion(ask("Hello", max_tokens=9))
        after = await client.server_service.GetMetrics(REQUEST)

    of_demo = {"model_name": "demo", "server": "1"}
    assert value(before, "vllm:generation_tokens_total", **of_demo) == 0
    assert (
        value(after, "vllm:prompt_tokens_total", **of_demo),
        value(after, "vllm:generation_tokens_total", **of_demo),
    ) == (answer.usage.prompt_tokens, answer.usage.completion_tokens)
    assert value(after, "ovchat_model_ready", **of_demo) == 1
    [first_token] = metrics(after, "vllm:time_to_first_token_seconds", **of_demo)
    histogram = first_token.histogram
    assert histogram.count == histogram.buckets[-1].cumulative_count == 1
    assert histogram.buckets[-1].upper_bound == math.inf
    assert histogram.sum > 0
    assert (after.server, after.replicas, after.version) == (1, 1, version("ovchat"))
    assert after.start_time == before.start_time
    assert after.uptime > before.uptime


async def test_families_are_named_and_typed_as_prometheus_reads_them(client: Client) -> None:
    response = await client.server_service.GetMetrics(REQUEST)

    types: dict[str, Any] = {family.name: family.type for family in response.families}
    assert types["vllm:prompt_tokens_total"] == metric_pb2.METRIC_TYPE_COUNTER
    assert types["vllm:num_requests_running"] == metric_pb2.METRIC_TYPE_GAUGE
    assert types["vllm:inter_token_latency_seconds"] == metric_pb2.METRIC_TYPE_HISTOGRAM
    assert metric_pb2.METRIC_TYPE_UNSPECIFIED not in types.values()
    assert all(family.help for family in response.families)


async def test_with_keys_one_is_needed_and_no_number_tells_whose_it_is(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    settings = make_settings(successor, api_keys=api_keys("first", "second"))
    server = Server(settings)
    async with running(server) as client:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.server_service.GetMetrics(REQUEST)
        for key in ("first", "second"):
            with pytest.raises(grpc.aio.AioRpcError):
                await client.chat.CreateChatCompletion(
                    ask("Hello", model="nobody"), metadata=(("x-api-key", key),)
                )
        # A client may know of an error before it is counted.
        counted = server._metrics.errors
        await until(lambda: counted.total() == 3)
        response = await client.server_service.GetMetrics(REQUEST, metadata=KEY)

    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert value(response, "ovchat_request_errors_total", code="model_not_found") == 2
    labels = {
        name for family in response.families for metric in family.metrics for name in metric.labels
    }
    assert "code" in labels
    assert "key" not in labels
