"""Images on other hosts."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, ThreadedResolver
from yarl import URL

from ovchat_server.domain.content import ImageError
from ovchat_server.domain.errors import shortened
from ovchat_server.images.addresses import CheckedResolver, is_public, not_public
from ovchat_server.images.file_size import too_large

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ssl import SSLContext

    from aiohttp import ClientResponse
    from aiohttp.abc import AbstractResolver

MAX_REDIRECTS = 3
# No server takes longer ones, and parsing one of megabytes would hold up everybody.
MAX_URL = 8192
OK = 200
REDIRECTS = (301, 302, 303, 307, 308)
# Some hosts refuse programs without a name.
HEADERS = {"User-Agent": "ovchat", "Accept": "image/*", "Accept-Encoding": "identity"}
UNBOUNDED = ClientTimeout(total=None, sock_connect=None)
CHUNK = 1 << 16

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Network:
    """How hosts are reached; tests have one of their own.

    Attributes:
        allows: Whether an address, as text, may be connected to.
        resolver: Makes what looks up addresses.
        ssl: Whom to trust; True: as the system does.
        timeout: Seconds that one image may take, redirects included.
    """

    allows: Callable[[str], bool] = is_public
    resolver: Callable[[], AbstractResolver] = ThreadedResolver
    ssl: SSLContext | bool = True
    timeout: float = 10


class Downloads:
    """Fetches images from the domains that the operator allows."""

    def __init__(self, domains: Sequence[str], max_bytes: int, network: Network) -> None:
        """Take what is allowed.

        Args:
            domains: Hosts, or `host:port`; each allows itself only, as in vLLM.
            max_bytes: Largest file that is fetched.
            network: How hosts are reached.
        """
        self._domains = frozenset(domain.lower().removesuffix(":443") for domain in domains)
        self._max_bytes = max_bytes
        self._network = network

    async def fetch(self, url: str) -> bytes:
        """Return the file at a URL.

        Raises:
            ImageError: It may not be fetched, or cannot be.
        """
        if not self._domains:
            raise ImageError(
                "is on another host, and the operator of this server allows none "
                "(--allowed-media-domains); send the image in a data: URL",
                "invalid_image_url",
            )
        if len(url) > MAX_URL:
            raise ImageError(f"is a URL of more than {MAX_URL} characters", "invalid_image_url")
        try:
            async with asyncio.timeout(self._network.timeout), self._session() as session:
                return await self._follow(session, url)
        except TimeoutError as error:
            raise _failed(f"took longer than {self._network.timeout:g} s to download") from error
        except (ClientError, OSError) as error:
            # What it is tells of the server's network: that is for the operator.
            logger.info("An image could not be downloaded: %s", error)
            raise _failed(
                "could not be downloaded: its host did not answer as it should"
            ) from error

    def _session(self) -> ClientSession:
        """Return a session for one image: nothing of it is left for the next."""
        network = self._network
        resolver = CheckedResolver(network.resolver(), network.allows)
        return ClientSession(
            connector=TCPConnector(resolver=resolver, ssl=network.ssl),
            headers=HEADERS,
            timeout=UNBOUNDED,
            # A small file may become any number of bytes.
            auto_decompress=False,
            trust_env=False,
        )

    async def _follow(self, session: ClientSession, url: str) -> bytes:
        """Fetch a file, wherever allowed redirects lead."""
        target = self._checked(url, "is on")
        for _ in range(MAX_REDIRECTS + 1):
            async with session.get(target, allow_redirects=False) as response:
                location = response.headers.get("Location")
                if response.status not in REDIRECTS or location is None:
                    return await self._body(response)
            target = self._checked(location, "redirects to", target)
        raise _failed(f"redirects more than {MAX_REDIRECTS} times")

    def _checked(self, text: str, leads: str, base: URL | None = None) -> URL:
        """Return a URL that may be fetched; it is parsed only here."""
        try:
            url = URL(text) if base is None else base.join(URL(text))
            host = url.host_port_subcomponent or ""
        except ValueError as error:
            raise ImageError(f"{leads} no host: the URL is wrong", "invalid_image_url") from error
        if url.scheme != "https":
            raise ImageError(
                f"{leads} a host without https: images are fetched over https: only",
                "invalid_image_url",
            )
        if host not in self._domains:
            raise ImageError(
                f"{leads} {shortened(host)!r}, which is not among the domains that the "
                "operator of this server allows (--allowed-media-domains); send the image in a "
                "data: URL",
                "invalid_image_url",
            )
        # Addresses are not looked up.
        if _is_address(url.host or "") and not self._network.allows(url.host or ""):
            raise not_public()
        return url

    async def _body(self, response: ClientResponse) -> bytes:
        if response.status != OK:
            raise _failed(f"could not be downloaded: its host answered {response.status}")
        if (response.content_length or 0) > self._max_bytes:
            raise too_large(self._max_bytes)
        body = bytearray()
        async for chunk in response.content.iter_chunked(CHUNK):
            body += chunk
            if len(body) > self._max_bytes:
                raise too_large(self._max_bytes)
        return bytes(body)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _failed(complaint: str) -> ImageError:
    return ImageError(complaint, "failed_to_download_image")
