"""Waiting until the service answers through both doors."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
from grpc_health.v1 import health_pb2

from ovchat_server.launch.http import request
from ovchat_server.launch.ports import authority

_HTTP_OK = 200
_INTERVAL = 0.05
_HTTP_INTERVAL = 0.5
# The server binds its port seconds after its start; gRPC would wait ever longer in between.
_CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A proxy that the environment names has no business on this machine.
    ("grpc.enable_http_proxy", 0),
)


async def wait_until_ready(host: str, *, grpc_port: int, rest_port: int) -> None:
    """Return once the server says SERVING and REST requests get through to it."""
    await _grpc_serving(authority(host, grpc_port))
    await _rest_healthy(host, rest_port)


async def _grpc_serving(target: str) -> None:
    async with grpc.aio.insecure_channel(target, options=_CHANNEL_OPTIONS) as channel:
        watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        while True:
            # A server that closes the connection ends the watch: the next one waits for it.
            with contextlib.suppress(grpc.aio.AioRpcError):
                async for update in watch(health_pb2.HealthCheckRequest(), wait_for_ready=True):
                    if update.status == health_pb2.HealthCheckResponse.SERVING:
                        return
            await asyncio.sleep(_INTERVAL)


async def _rest_healthy(host: str, port: int) -> None:
    # Envoy has nothing to watch; it is up some 100 ms after its start, well before the model.
    while True:
        with contextlib.suppress(OSError):
            status, _ = await request("GET", host, port, "/health")
            if status == _HTTP_OK:
                return
            # Every answer is a line in the access log.
            await asyncio.sleep(_HTTP_INTERVAL)
        await asyncio.sleep(_INTERVAL)
