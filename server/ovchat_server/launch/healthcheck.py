"""Health check for containers: asks a server whether it serves, exit code 0 or 1.

python -m ovchat_server.launch.healthcheck [--service NAME] [HOST:PORT]
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import grpc
from grpc_health.v1 import health_pb2

from ovchat_server.tls.client import client_tls, with_client_tls
from ovchat_server.tls.errors import TlsError

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT = 3.0


@click.command()
@click.argument("target", default="127.0.0.1:9000")
@click.option("--service", metavar="NAME", default="", help="Service to ask for; all by default.")
@with_client_tls
def main(target: str, service: str, **tls: Path | None) -> None:
    """Ask the server at TARGET, HOST:PORT or unix:PATH, whether it serves."""
    try:
        if client := client_tls(**tls):  # type: ignore[arg-type]
            channel = grpc.secure_channel(target, client.credentials(), client.options())
        else:
            channel = grpc.insecure_channel(target)
    except TlsError as error:
        raise click.ClickException(str(error)) from error
    with channel:
        sys.exit(check(channel, service))


def check(channel: grpc.Channel, service: str = "") -> int:
    """Check the server at the other end of `channel` and return the exit code."""
    call = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    try:
        answer = call(health_pb2.HealthCheckRequest(service=service), timeout=_TIMEOUT)
    except grpc.RpcError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)}\n")
    return 0 if answer.status == health_pb2.HealthCheckResponse.SERVING else 1


if __name__ == "__main__":
    main()
