"""Which client a call comes from: clients take turns where the engine is full."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ovchat_server.rpc.authentication import bearer_key, digest
from ovchat_server.serving.caller import client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.rpc.wrapping import Around, Context

FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}


def naming(*, by_key: bool) -> Around:
    """Return what notes the client of each call.

    Args:
        by_key: By its API key, which was checked. Otherwise by its address: the word of
            Envoy, which is on this machine, or the one that it calls from.
    """

    @contextlib.asynccontextmanager
    async def name(
        context: Context,
        method: str,  # noqa: ARG001  the same shape as every surrounding
    ) -> AsyncIterator[None]:
        if by_key:
            known = digest(bearer_key(context)).hex()
        else:
            metadata = dict(context.invocation_metadata() or ())
            known = peer_address(str(metadata.get("x-forwarded-for", "")), context.peer() or "")
        # Every RPC runs in a task of its own, so nothing is left to reset.
        client.set(known)
        yield

    return name


def peer_address(forwarded_for: str, peer: str) -> str:
    """Return the address that Envoy, the last proxy, saw; or gRPC's peer without its port."""
    forwarded = forwarded_for.rpartition(",")[2].strip()
    if forwarded and _near(peer):
        return forwarded
    return peer.rpartition(":")[0]


def _near(peer: str) -> bool:
    """Say whether a peer is on this machine, as Envoy is; others may write any header."""
    family, _, rest = peer.partition(":")
    if family not in FAMILIES:
        return family.startswith("unix")
    host = unquote(rest.rpartition(":")[0]).strip("[]")
    # An address of ours can be bound. Not only loopback: a server that listens on one address
    # is called from it.
    with socket.socket(FAMILIES[family], socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True
