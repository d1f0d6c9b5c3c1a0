"""Waiting until servers and Envoy are ready."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
from grpc_health.v1 import health_pb2

from ovchat_server.launch.http import request

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


async def grpc_serving(target: str) -> None:
    """Return once the server at `target` reports SERVING."""
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


async def rest_healthy(host: str, port: int) -> None:
    """Return once REST requests reach a server that serves."""
    # Envoy has nothing to watch; it is up some 100 ms after its start, well before the model.
    while True:
        with contextlib.suppress(OSError):
            status, _ = await request("GET", host, port, "/health")
            if status == _HTTP_OK:
                return
            # Every answer is a line in the access log.
            await asyncio.sleep(_HTTP_INTERVAL)
        await asyncio.sleep(_INTERVAL)


async def envoy_running(admin_port: int) -> None:
    """Return once Envoy listens."""
    while True:
        with contextlib.suppress(OSError):
            status, _ = await request("GET", "127.0.0.1", admin_port, "/ready")
            if status == _HTTP_OK:
                return
        await asyncio.sleep(_INTERVAL)


async def in_rotation(admin_port: int, socket: str) -> None:
    """Return once Envoy considers the server at `socket` healthy."""
    healthy = f"::{socket}::health_flags::healthy\n".encode()
    while True:
        with contextlib.suppress(OSError):
            _, clusters = await request("GET", "127.0.0.1", admin_port, "/clusters")
            if healthy in clusters:
                return
        await asyncio.sleep(_INTERVAL)
