"""Which client a call comes from: when the engine is full, clients take turns."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ovchat_server.rpc.authentication import digest, sent_key
from ovchat_server.rpc.probes import Exempt, exempt
from ovchat_server.serving.caller import api_key, client
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ovchat_server.rpc.middleware import Context, Middleware

# Of a key's digest: enough to tell keys apart.
SHOWN_DIGITS = 8
FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}


def set_client(*, by_key: bool) -> Middleware:
    """Return middleware that sets the client of each call.

    Args:
        by_key: Identify clients by their API key, which was checked before; it is set, too.
            Otherwise by their address: as Envoy on this machine reports it, or the peer's own.
    """

    @contextlib.asynccontextmanager
    async def set_from_call(
        context: Context,
        method: str,
    ) -> AsyncIterator[None]:
        # Of a probe the key was not checked.
        if by_key and not exempt(method, Exempt.KEY):
            name = digest(sent_key(context)).hex()
            api_key.set(name)
            current_record().client_key = name[:SHOWN_DIGITS]
        else:
            metadata = dict(context.invocation_metadata() or ())
            name = peer_address(str(metadata.get("x-forwarded-for", "")), context.peer() or "")
        # No reset: every RPC runs in a task of its own.
        client.set(name)
        yield

    return set_from_call


def shown_keys(keys: Iterable[str]) -> list[str]:
    """Return what stands for keys where they must not be shown."""
    return [digest(key).hex()[:SHOWN_DIGITS] for key in keys]


def peer_address(forwarded_for: str, peer: str) -> str:
    """Return the client's address as Envoy, the last proxy, saw it, or the peer's without port."""
    forwarded = forwarded_for.rpartition(",")[2].strip()
    if forwarded and _near(peer):
        return forwarded
    return peer.rpartition(":")[0]


def _near(peer: str) -> bool:
    """Return whether a peer is on this machine, as Envoy is; others could forge the header."""
    family, _, rest = peer.partition(":")
    if family not in FAMILIES:
        return family.startswith("unix")
    host = unquote(rest.rpartition(":")[0]).strip("[]")
    # An address of this machine can be bound. Loopback is not the only one: a server that
    # listens on a single address is called from that address.
    with socket.socket(FAMILIES[family], socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True
