"""Which client a call comes from: clients take turns where the engine is full."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, Any

from ovchat_server.serving.caller import client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

    from ovchat_server.rpc.wrapping import Around


def naming(*, by_key: bool) -> Around:
    """What notes the client of each call.

    Args:
        by_key: By its API key, which was checked. Otherwise by its address: Envoy's word for
            it, or the one that it calls from.
    """

    @contextlib.asynccontextmanager
    async def name(
        context: grpc.aio.ServicerContext[Any, Any],
        method: str,  # noqa: ARG001  the same shape as every surrounding
    ) -> AsyncIterator[None]:
        metadata = dict(context.invocation_metadata() or ())
        if by_key:
            known = hashlib.sha256(str(metadata.get("authorization")).encode()).hexdigest()
        else:
            known = _address(str(metadata.get("x-forwarded-for", "")), context.peer() or "")
        # Every RPC runs in a task of its own, so nothing is left to reset.
        client.set(known)
        yield

    return name


def _address(forwarded_for: str, peer: str) -> str:
    """The address that Envoy, the last of proxies, saw; or the host of gRPC's `ipv4:host:port`."""
    return forwarded_for.rpartition(",")[2].strip() or peer.rpartition(":")[0]
