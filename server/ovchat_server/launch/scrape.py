"""One scrape of all that `ovchat up` runs: the metrics of its servers, and Envoy's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp

from ovchat_server.metrics.merged import answered, merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.launch.admin import Admin

# Less than Prometheus waits for the whole scrape, which is 10 s.
_TIMEOUT = aiohttp.ClientTimeout(total=3)


async def scrape(sockets: Sequence[str], admin: Admin) -> bytes:
    """Return the metrics of all who answer, in Prometheus' text format.

    Args:
        sockets: The abstract sockets of the servers' metrics, by the servers' numbers.
        admin: Envoy's.
    """
    *servers, envoy = await asyncio.gather(
        *(_server(socket) for socket in sockets),
        _answer(f"{admin.url}/stats/prometheus", admin.connector()),
    )
    texts = [text for text in servers if text is not None]
    up = answered([text is not None for text in servers])
    return merged([*texts, up]) + (envoy or b"")


async def _server(socket: str) -> bytes | None:
    path = f"\0{socket.removeprefix('@')}"
    return await _answer("http://server/metrics", aiohttp.UnixConnector(path))


async def _answer(url: str, connector: aiohttp.BaseConnector | None = None) -> bytes | None:
    """Return what is answered, or None if nothing is in time."""
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=_TIMEOUT, raise_for_status=True
            ) as session,
            session.get(url) as answer,
        ):
            return await answer.read()
    except (aiohttp.ClientError, OSError):
        return None
