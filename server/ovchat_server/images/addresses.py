"""Addresses that a server may connect to for its callers: public ones."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

from aiohttp.abc import AbstractResolver

from ovchat_server.domain.content import ImageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.abc import ResolveResult

GLOBAL_UNICAST = IPv6Network("2000::/3")
# RFC 6052: where only IPv6 is spoken, hosts of IPv4 have such addresses.
NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Say whether an address, as text, belongs to a host on the internet."""
    ip = ip_address(address)
    if isinstance(ip, IPv6Address):
        behind = IPv4Address(int(ip) & 0xFFFFFFFF) if ip in NAT64 else None
        ip = behind or ip.ipv4_mapped or ip.sixtofour or ip
    if isinstance(ip, IPv6Address):
        return ip.is_global and ip in GLOBAL_UNICAST
    return ip.is_global and not ip.is_multicast


def not_public() -> ImageError:
    """Return the verdict on a host that only a network of its own can reach."""
    return ImageError(
        "is on a host without a public address; send the image in a data: URL",
        "invalid_image_url",
    )


class CheckedResolver(AbstractResolver):
    """Finds only addresses that may be connected to.

    The address that is checked is the one that is connected to, whatever DNS says next.
    """

    def __init__(self, resolver: AbstractResolver, allows: Callable[[str], bool]) -> None:
        """Take what finds the addresses, and what says whether one is allowed."""
        self._resolver = resolver
        self._allows = allows

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host.

        Raises:
            ImageError: None of them is allowed.
        """
        found = await self._resolver.resolve(host, port, family)
        if allowed := [result for result in found if self._allows(result["host"])]:
            return allowed
        raise not_public()

    async def close(self) -> None:
        """Close the resolver."""
        await self._resolver.close()
