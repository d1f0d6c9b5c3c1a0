"""The way out: HTTP to Envoy's egress listener, which reaches the providers."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import (
    ClientError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    UnixConnector,
)
from yarl import URL

from ovchat_server.domain.errors import UnavailableError
from ovchat_server.providers import errors
from ovchat_server.providers.events import events
from ovchat_server.providers.kind import BadAnswerError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from aiohttp import BaseConnector, ClientResponse

    from ovchat_server.domain.errors import ApiError

# Set by Envoy on replies of its own, and removed from those of providers: its response flags.
FAILURE = "x-ovchat-egress-failure"
# An answer that is not streamed. With many choices and log probabilities it has some MiB.
MAX_ANSWER_BYTES = 64 << 20
# Of errors, which say what they have to say at the beginning.
MAX_ERROR_BYTES = 64 << 10
# Envoy has the timeouts, and closes what is idle; in between, a connection is kept.
UNBOUNDED = ClientTimeout(total=None, sock_connect=None)
KEPT_SECONDS = 60
MAX_RETRY_AFTER = 86400.0
# Some providers have long headers.
MAX_HEADER_BYTES = 1 << 16


def is_socket(address: str) -> bool:
    """Return whether the address of a listener is a Unix socket's, not HOST:PORT."""
    return address.startswith(("@", "/", "."))


@dataclass(frozen=True, slots=True, eq=False)
class ProviderResponse:
    """The response of a provider, of which nothing but the headers was read.

    Attributes:
        provider: The provider's name.
    """

    provider: str
    response: ClientResponse

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.response.status

    @property
    def retry_after(self) -> float | None:
        """Seconds after which it says that trying again makes sense."""
        with contextlib.suppress(ValueError):
            seconds = float(self.response.headers.get("retry-after", ""))
            if math.isfinite(seconds):
                return min(max(seconds, 0), MAX_RETRY_AFTER)
        return None

    @property
    def is_json(self) -> bool:
        """Whether it is one JSON text: some servers stream nothing, whatever they are asked."""
        return self.response.content_type == "application/json"

    async def body(self) -> bytes:
        """Return the whole body.

        Raises:
            ApiError: It broke off, or is larger than MAX_ANSWER_BYTES.
        """
        return await self._read(MAX_ANSWER_BYTES, whole=True)

    async def error_body(self) -> bytes:
        """Return the beginning of the body of an error.

        Raises:
            ApiError: It broke off.
        """
        return await self._read(MAX_ERROR_BYTES, whole=False)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield the data of its server-sent events.

        Raises:
            ApiError: It broke off, or an event is too large.
            BadAnswerError: An event is too large.
        """
        async with contextlib.aclosing(events(self._pieces())) as found:
            async for data in found:
                yield data

    def fail(self, error: ApiError) -> None:
        """Have whoever reads it get an error."""
        self.response.content.set_exception(error)

    async def _read(self, most: int, *, whole: bool) -> bytes:
        body = bytearray()
        async for piece in self._pieces():
            body += piece
            if len(body) > most:
                if not whole:
                    break
                raise BadAnswerError(f"it has more than {most} bytes")
        return bytes(body[:most])

    async def _pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self.response.content.iter_any():
                yield piece
        except (ClientError, OSError) as error:
            raise errors.of_break(self.provider) from error


class Egress:
    """Envoy's egress listener, at which each provider is a host of its name."""

    def __init__(self, address: str) -> None:
        """Use the listener at `address`: HOST:PORT, the path of a socket, or "@" and a name."""
        self._address = address
        self._session: ClientSession | None = None
        self._closed = False
        self._responses: set[ProviderResponse] = set()

    @contextlib.asynccontextmanager
    async def request(
        self,
        provider: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> AsyncGenerator[ProviderResponse, None]:
        """Send a request; on exit what is left of the response is given up.

        Args:
            provider: The provider's name.
            path: The path below its base URL.
            headers: Headers besides those of HTTP itself.
            body: What is posted, as JSON; None: it is a GET.

        Raises:
            ApiError: The provider cannot be reached.
        """
        if self._closed:
            raise errors.of_stopping()
        headers = {**headers, "host": provider}
        if body is not None:
            headers["content-type"] = "application/json"
        method = "GET" if body is None else "POST"
        try:
            response = await self._opened().request(
                method, self._url(path), headers=headers, data=body, allow_redirects=False
            )
        except (ClientError, OSError) as error:
            if self._closed:
                raise errors.of_stopping() from error
            # Envoy itself is away: `ovchat up` starts it again.
            message = f"The provider {provider!r} cannot be reached: Envoy does not answer."
            raise UnavailableError(message, retry_after=errors.RETRY_SOON) from error
        answered = ProviderResponse(provider, response)
        self._responses.add(answered)
        try:
            if (flags := response.headers.get(FAILURE)) is not None:
                reason = (await answered.error_body()).decode(errors="replace")
                raise errors.of_egress(provider, flags, reason)
            yield answered
        finally:
            # Of an answer that was read to its end the connection is kept; otherwise closing it
            # ends the work of the provider.
            response.close()
            self._responses.discard(answered)

    async def close(self) -> None:
        """Close all connections. What is under way fails."""
        self._closed = True
        for response in self._responses:
            response.fail(errors.of_stopping())
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _url(self, path: str) -> URL:
        host = "egress" if is_socket(self._address) else self._address
        return URL(f"http://{host}{path}")

    def _opened(self) -> ClientSession:
        """Return the session, which has to be made in the event loop."""
        if self._session is None:
            self._session = ClientSession(
                connector=self._connector(),
                timeout=UNBOUNDED,
                max_field_size=MAX_HEADER_BYTES,
                max_line_size=MAX_HEADER_BYTES,
                cookie_jar=DummyCookieJar(),
                trust_env=False,
                skip_auto_headers=("user-agent",),
                headers={"user-agent": "ovchat", "accept-encoding": "identity"},
            )
        return self._session

    def _connector(self) -> BaseConnector:
        # Envoy bounds the requests of each provider.
        if not is_socket(self._address):
            return TCPConnector(limit=0, keepalive_timeout=KEPT_SECONDS)
        path = self._address
        if path.startswith("@"):
            path = "\0" + path.removeprefix("@")
        return UnixConnector(path, limit=0, keepalive_timeout=KEPT_SECONDS)
