from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import grpc_testing
import pytest
from grpc_health.v1 import health_pb2

from ovchat_server.launch.healthcheck import check

CHECK = health_pb2.DESCRIPTOR.services_by_name["Health"].methods_by_name["Check"]
ANSWERS = [
    (grpc.StatusCode.OK, health_pb2.HealthCheckResponse.SERVING, 0),
    (grpc.StatusCode.OK, health_pb2.HealthCheckResponse.NOT_SERVING, 1),
    (grpc.StatusCode.UNAVAILABLE, health_pb2.HealthCheckResponse.UNKNOWN, 1),
]


@pytest.mark.parametrize(("code", "status", "expected"), ANSWERS)
def test_the_exit_code_says_whether_the_server_serves(
    code: grpc.StatusCode, status: health_pb2.HealthCheckResponse.ServingStatus, expected: int
) -> None:
    channel = grpc_testing.channel(
        health_pb2.DESCRIPTOR.services_by_name.values(), grpc_testing.strict_real_time()
    )
    with ThreadPoolExecutor() as executor:
        exit_code = executor.submit(check, channel)
        _, request, rpc = channel.take_unary_unary(CHECK)
        rpc.terminate(health_pb2.HealthCheckResponse(status=status), (), code, "")

        assert request == health_pb2.HealthCheckRequest()
        assert exit_code.result() == expected
