"""Health check for containers: asks a server whether it serves, exit code 0 or 1.

python -m ovchat_server.launch.healthcheck [HOST:PORT]
"""

from __future__ import annotations

import sys

import grpc
from grpc_health.v1 import health_pb2

_TIMEOUT = 3.0


def main(target: str = "127.0.0.1:9000") -> int:
    """Check the server at `target` and return the exit code."""
    with grpc.insecure_channel(target) as channel:
        return check(channel)


def check(channel: grpc.Channel) -> int:
    """Check the server at the other end of `channel` and return the exit code."""
    call = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    try:
        answer = call(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT)
    except grpc.RpcError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)}\n")
    return 0 if answer.status == health_pb2.HealthCheckResponse.SERVING else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
