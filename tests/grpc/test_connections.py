"""A server takes so many connections and closes further ones."""

from __future__ import annotations

import asyncio
import contextlib

import grpc

from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.rpc.calls import Calls
from ovchat_server.rpc.health import HealthServicer
from ovchat_server.rpc.server import Served, ServerOptions, create_server
from tests.http2 import PREFACE, SETTINGS, frame, until


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(PREFACE + frame(SETTINGS, 0, 0, b""))
    return reader, writer


async def test_a_connection_too_many_is_closed_and_the_others_live_on() -> None:
    nothing = grpc.method_handlers_generic_handler("x", {})
    server = create_server(
        Served((), "ovchat.v1.RestService", nothing, lambda _method, _error: ("", None)),
        HealthServicer(),
        Calls(),
        ServerOptions(1 << 20, 10, None, None, DEFAULT_LIMITS, max_connections=2),
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    taken = [await connected(port) for _ in range(2)]
    for reader, _ in taken:
        await until(reader, SETTINGS)
    refused, _ = await connected(port)
    with contextlib.suppress(ConnectionResetError):
        assert await refused.read() == b""

    taken[0][1].close()
    # The server hears of it a moment later.
    while True:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionResetError):
            reader, writer = await connected(port)
            await until(reader, SETTINGS)
            break
    writer.close()
    taken[1][1].close()
    await server.stop(None)
