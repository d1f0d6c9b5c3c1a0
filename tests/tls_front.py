"""TLS before a server that has none."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from tests.ports import unused_port

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def tls_front(port: int, context: ssl.SSLContext, protocol: str) -> AsyncIterator[int]:
    """Serve what a local port does over TLS; `protocol` is ALPN's name of what that speaks."""
    context.set_alpn_protocols([protocol])
    front = unused_port()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pump(reader, back), _pump(there, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", front, ssl=context)
    try:
        yield front
    finally:
        server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
