"""Which calls are probes, the same in the server and before it."""

from __future__ import annotations

import logging
import re
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
import pytest
import yaml

from ovchat_server.launch.envoy_config import EnvoyFiles
from ovchat_server.rpc.access import access
from ovchat_server.rpc.probes import Exempt, exempt

HEALTH = "/grpc.health.v1.Health/Watch"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
LIVENESS = "/ovchat.v1.RestService/GetLiveness"
READINESS = "/ovchat.v1.RestService/GetReadiness"
MODEL_READINESS = "/ovchat.v1.RestService/GetModelReadiness"
METADATA = "/ovchat.v1.RestService/GetServerMetadata"
METRICS = "/ovchat.v1.ServerService/GetMetrics"
NO_PROBES = ["/ovchat.v1.RestService/GetVersion", "/ovchat.v1.ChatService/CreateChatCompletion"]
ALL = [HEALTH, REFLECTION, LIVENESS, READINESS, MODEL_READINESS, METADATA, METRICS, *NO_PROBES]


@pytest.mark.parametrize(
    ("rule", "probes"),
    [
        (Exempt.KEY, [HEALTH, REFLECTION, LIVENESS, READINESS, MODEL_READINESS, METADATA]),
        (Exempt.LOG, [HEALTH, LIVENESS, READINESS, MODEL_READINESS, METADATA, METRICS]),
        (Exempt.DRAIN, [HEALTH, REFLECTION, LIVENESS, METRICS]),
    ],
)
def test_each_probe_is_exempt_from_what_the_table_says(rule: Exempt, probes: list[str]) -> None:
    assert [method for method in ALL if exempt(method, rule)] == probes


def test_envoys_access_log_leaves_out_the_same_probes() -> None:
    config = yaml.safe_load(EnvoyFiles.locate().config.read_text())
    [listener] = config["static_resources"]["listeners"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    _, probes = manager["access_log"][0]["filter"]["and_filter"]["filters"]
    # Requests have the RPC as their path by then.
    pattern = probes["or_filter"]["filters"][0]["header_filter"]["header"]["string_match"][
        "safe_regex"
    ]["regex"]
    assert [method for method in ALL if re.fullmatch(pattern, method)] == [
        method for method in ALL if exempt(method, Exempt.LOG)
    ]


@pytest.mark.parametrize(
    ("method", "status", "level"),
    [
        (READINESS, "UNAVAILABLE", logging.DEBUG),
        (HEALTH, "CANCELLED", logging.DEBUG),
        (READINESS, "INTERNAL", logging.WARNING),
        (MODEL_READINESS, "NOT_FOUND", logging.INFO),
        (NO_PROBES[0], "UNAVAILABLE", logging.WARNING),
    ],
)
async def test_a_probe_is_logged_where_it_fails_for_another_reason_than_not_ready(
    method: str, status: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "ovchat.access")
    code = grpc.StatusCode[status]
    context: Any = SimpleNamespace(
        invocation_metadata=lambda: (), peer=lambda: "unix:", code=lambda: code
    )
    with pytest.raises(grpc.aio.AbortError):
        async with access(())(context, method):
            raise grpc.aio.AbortError
    assert [record.levelno for record in caplog.records] == [level]
