"""Whether a child still answers: one that hangs does not end by itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import grpc
from grpc_health.v1 import health_pb2

from ovchat_server.launch.ready import CHANNEL_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ovchat_server.launch.admin import Admin

# So often in a row it has not answered: when this process is what pauses, that counts once.
_TIMES: Final = 5


async def never() -> None:
    """Wait for ever."""
    await asyncio.Event().wait()


async def silent(ask: Callable[[float], Awaitable[bool]], timeout: float) -> None:
    """Return once a child has answered nothing for so long.

    Args:
        ask: Asks it, given the seconds for an answer; says whether there was one in time.
        timeout: The seconds, in which it is asked several times; 0: it may be silent for ever.
    """
    if not timeout:
        await never()
    loop, share = asyncio.get_running_loop(), timeout / _TIMES
    missed = 0
    while missed < _TIMES:
        begun = loop.time()
        missed = 0 if await ask(share) else missed + 1
        await asyncio.sleep(begun + share - loop.time())


async def server_silent(target: str, timeout: float) -> None:
    """Return once the server at `target` has answered nothing for so long."""
    async with grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )

        async def ask(seconds: float) -> bool:
            try:
                await check(health_pb2.HealthCheckRequest(), timeout=seconds)
            except grpc.aio.AioRpcError as error:
                # Refused, it is about to end or is full of connections: it does not hang.
                return error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED
            return True

        await silent(ask, timeout)


async def envoy_silent(admin: Admin, timeout: float) -> None:
    """Return once Envoy has answered nothing for so long."""

    async def ask(seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await admin.ask("GET", "/ready")
        except TimeoutError:
            return False
        except OSError:
            # As above.
            return True
        return True

    await silent(ask, timeout)
