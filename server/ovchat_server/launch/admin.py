"""Envoy's admin interface, on a private Unix socket or on a port of loopback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from ovchat_server.launch.envoy_config import Socket
from ovchat_server.launch.http import request, request_on_socket
from ovchat_server.launch.ports import authority

if TYPE_CHECKING:
    from ovchat_server.launch.envoy_config import Upstream


@dataclass(frozen=True, slots=True)
class Admin:
    """Where it is, and a way to ask it."""

    address: Upstream

    async def ask(self, method: str, path: str) -> tuple[int, bytes]:
        """Send a request without a body and return the status and body of the answer.

        Raises:
            OSError: There is no complete answer within two seconds.
        """
        if isinstance(self.address, Socket):
            return await request_on_socket(method, self.address.name, path)
        return await request(method, self.address.host, self.address.port, path)

    @property
    def url(self) -> str:
        """The URL of its root, for `connector`."""
        if isinstance(self.address, Socket):
            return "http://envoy"
        return f"http://{authority(self.address.host, self.address.port)}"

    def connector(self) -> aiohttp.BaseConnector | None:
        """Return what reaches it; None: the usual one does."""
        if isinstance(self.address, Socket):
            return aiohttp.UnixConnector(self.address.name)
        return None
