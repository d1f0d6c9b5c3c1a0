"""Waiting until servers and Envoy are ready."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import grpc
from google.api import httpbody_pb2
from grpc_health.v1 import health_pb2

from ovchat.v1 import rest_service_pb2

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from ovchat_server.launch.admin import Admin

_HTTP_OK = 200
_INTERVAL = 0.05
_HTTP_INTERVAL = 0.5
_MODEL_INTERVAL = 0.5
# The server binds its port seconds after its start; gRPC would wait ever longer in between.
CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A proxy that the environment names has no business on this machine.
    ("grpc.enable_http_proxy", 0),
)


async def grpc_serving(target: str) -> None:
    """Return once the server at `target` reports SERVING."""
    async with grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS) as channel:
        watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        while True:
            # A server that closes the connection ends the watch: the next one waits for it.
            with contextlib.suppress(grpc.aio.AioRpcError):
                async for update in watch(health_pb2.HealthCheckRequest(), wait_for_ready=True):
                    if update.status == health_pb2.HealthCheckResponse.SERVING:
                        return
            # Or it has as many watches as it takes.
            with contextlib.suppress(grpc.aio.AioRpcError):
                answer = await check(health_pb2.HealthCheckRequest())
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return
            await asyncio.sleep(_INTERVAL)


async def some_served(
    target: str,
    models: Collection[str],
    tell: Callable[[Sequence[str], Sequence[str]], None] = lambda _served, _failed: None,
) -> Sequence[str]:
    """Return the models that are served, once some are and all others cannot be loaded.

    Args:
        target: The server.
        models: The ids of all models.
        tell: Is called with those that are served and those that cannot be loaded, when none is
            being loaded any more, and again when that has changed.
    """
    told = None
    async with grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS) as channel:
        while True:
            ready = {model: await _model_ready(channel, model) for model in models}
            served = [model for model in models if ready[model]]
            failed = [model for model in models if ready[model] is False]
            if failed and len(served) + len(failed) == len(models):
                if told != failed:
                    tell(served, failed)
                    told = failed
                if served:
                    return served
            await asyncio.sleep(_MODEL_INTERVAL)


async def _model_ready(channel: grpc.aio.Channel, model: str) -> bool | None:
    """Say whether a model is served: False if it cannot be loaded, None if it may yet be."""
    ask = channel.unary_unary(
        "/ovchat.v1.RestService/GetModelReadiness",
        request_serializer=rest_service_pb2.RestServiceGetModelReadinessRequest.SerializeToString,
        response_deserializer=httpbody_pb2.HttpBody.FromString,
    )
    wanted = rest_service_pb2.RestServiceGetModelReadinessRequest(id=model)
    try:
        await ask(wanted, wait_for_ready=True)
    except grpc.aio.AioRpcError as error:
        metadata = dict(error.trailing_metadata() or ())
        # The server's own answer, and no word of trying again.
        lasting = "x-request-id" in metadata and "retry-after" not in metadata
        return False if lasting and error.code() is grpc.StatusCode.UNAVAILABLE else None
    return True


async def rest_healthy(ask: Callable[[], Awaitable[tuple[int, bytes]]]) -> None:
    """Return once REST requests reach a server that serves.

    Args:
        ask: Asks /health; returns the status and the body of the answer.
    """
    # Envoy has nothing to watch; it is up some 100 ms after its start, well before the model.
    while True:
        with contextlib.suppress(OSError):
            status, _ = await ask()
            if status == _HTTP_OK:
                return
            # Every answer is a line in the access log.
            await asyncio.sleep(_HTTP_INTERVAL)
        await asyncio.sleep(_INTERVAL)


async def envoy_running(admin: Admin) -> None:
    """Return once Envoy listens."""
    while True:
        with contextlib.suppress(OSError):
            status, _ = await admin.ask("GET", "/ready")
            if status == _HTTP_OK:
                return
        await asyncio.sleep(_INTERVAL)


async def in_rotation(admin: Admin, socket: str) -> None:
    """Return once Envoy considers the server at `socket` healthy."""
    healthy = f"::{socket}::health_flags::healthy\n".encode()
    while True:
        with contextlib.suppress(OSError):
            _, clusters = await admin.ask("GET", "/clusters")
            if healthy in clusters:
                return
        await asyncio.sleep(_INTERVAL)
