"""Answers GET /metrics."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable

# Seconds that a scrape under way may still take when the rest has ended.
_SHUTDOWN_TIMEOUT = 1.0


@contextlib.asynccontextmanager
async def serving(
    exposition: Callable[[], Awaitable[bytes]], listening: socket.socket
) -> AsyncIterator[None]:
    """Answer GET /metrics, and nothing else.

    Args:
        exposition: Returns the metrics in Prometheus' text format.
        listening: Where they are asked for; closed at the end.
    """

    async def answer(_request: web.Request) -> web.Response:
        headers = {"content-type": CONTENT_TYPE_PLAIN_0_0_4}
        return web.Response(body=await exposition(), headers=headers)

    application = web.Application()
    application.router.add_get("/metrics", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=_SHUTDOWN_TIMEOUT)
    with listening:
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            yield
        finally:
            await runner.cleanup()
