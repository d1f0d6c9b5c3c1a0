"""Who makes a call."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ovchat_server.domain.errors import AuthenticationError
from ovchat_server.domain.identity import Identity
from ovchat_server.rpc.authentication import authenticated
from ovchat_server.rpc.client_certificate import certificate_name
from ovchat_server.rpc.probes import Exempt, exempt
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ovchat_server.domain.identity import KeyRing
    from ovchat_server.rpc.middleware import Context, Middleware

FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}


def identify(keys: KeyRing, *, by_certificate: bool = False) -> Middleware:
    """Return middleware that finds out who makes each call.

    Where nothing else tells, a caller is known by an address: as Envoy on this machine reports it,
    or the peer's own.

    Args:
        keys: Where they are required, callers are known by theirs.
        by_certificate: Otherwise they are known by the certificates that TLS asks them for.
    """

    @contextlib.asynccontextmanager
    async def identified(context: Context, method: str) -> AsyncIterator[None]:
        if _asked_for(keys, method):
            known = _by_key(context, keys)
        elif by_certificate and (name := certificate_name(context)):
            known = Identity(name, name)
        else:
            known = _by_address(context)
        current_record().caller = known
        yield

    return identified


def lacks_key(keys: KeyRing, method: str, metadata: Iterable[tuple[str, str | bytes]]) -> bool:
    """Return whether `identify` will refuse a call."""
    try:
        if _asked_for(keys, method):
            authenticated(dict(metadata), keys)
    except AuthenticationError:
        return True
    return False


def _asked_for(keys: KeyRing, method: str) -> bool:
    """Return whether a call needs a key, as no probe does."""
    return keys.required and not exempt(method, Exempt.KEY)


def _by_key(context: Context, keys: KeyRing) -> Identity:
    key = authenticated(dict(context.invocation_metadata() or ()), keys)
    return Identity(key.name, key.name, key.rules)


def _by_address(context: Context) -> Identity:
    metadata = dict(context.invocation_metadata() or ())
    return Identity(peer_address(str(metadata.get("x-forwarded-for", "")), context.peer() or ""))


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
