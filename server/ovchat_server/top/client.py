"""Asks the servers at an address for their numbers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

import grpc
import grpc.aio

from ovchat.v1 import server_service_pb2, server_service_pb2_grpc
from ovchat_server.top.snapshots import Snapshot

if TYPE_CHECKING:
    from collections.abc import Collection

    from ovchat_server.tls.client import ClientTls

# Seconds that a server may take to answer.
TIMEOUT: Final = 3.0
# Envoy gives a call to the server with the fewest. Calls at once, twice as many each time, reach
# those that are busy, too: of two servers one that has 31 more than the other.
WAVES: Final = 5
# More are no ovchat.
MAX_REPLICAS: Final = 32
# A server that is started again is found at once.
_OPTIONS: Final = (("grpc.max_reconnect_backoff_ms", 1000),)


class TopError(Exception):
    """There are no numbers, and asking again does not help; the message says what does."""


class UnreachableError(TopError):
    """There are no numbers, but there may be some later."""


class MetricsClient:
    """Asks for numbers; an async context manager."""

    def __init__(self, address: str, key: str | None, tls: ClientTls | None = None) -> None:
        """Ask nothing yet.

        Args:
            address: HOST:PORT of a server, or of the Envoy before several.
            key: The API key; None if there is none.
            tls: How to speak TLS; None: not at all.

        Raises:
            TopError: The key can be none.
        """
        self.address = address
        self._tls = tls
        self._key = (key or "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise TopError("--api-key has characters that no key can have")
        self._replicas = 1

    async def __aenter__(self) -> Self:
        """Open the channel.

        Raises:
            TlsError: A file of TLS cannot be used.
        """
        if self._tls is None:
            self._channel = grpc.aio.insecure_channel(self.address, _OPTIONS)
        else:
            options = (*_OPTIONS, *self._tls.options())
            credentials = self._tls.credentials()
            self._channel = grpc.aio.secure_channel(self.address, credentials, options)
        self._service = server_service_pb2_grpc.ServerServiceStub(self._channel)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self._channel.close()

    async def snapshots(self) -> Collection[Snapshot]:
        """Return the numbers of all servers that are reached, one at least.

        Raises:
            UnreachableError: None is.
            TopError: They do not tell.
        """
        heard: dict[int, Snapshot] = {}
        failure: TopError | None = None
        for doubled in range(WAVES):
            calls = [self._ask() for _ in range(self._replicas << doubled)]
            for answer in await asyncio.gather(*calls, return_exceptions=True):
                if isinstance(answer, Snapshot):
                    heard[answer.server] = answer
                    self._replicas = min(answer.replicas, MAX_REPLICAS)
                elif isinstance(answer, UnreachableError):
                    failure = answer
                else:
                    raise answer
            if failure or len(heard) >= self._replicas:
                break
        if failure and not heard:
            raise failure
        return heard.values()

    async def _ask(self) -> Snapshot:
        metadata = (("authorization", f"Bearer {self._key}"),) if self._key else ()
        request = server_service_pb2.GetMetricsRequest()
        try:
            answer = await self._service.GetMetrics(request, timeout=TIMEOUT, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise self._error(error) from error
        return Snapshot.of(answer)

    def _error(self, error: grpc.aio.AioRpcError) -> TopError:
        address = self.address
        match error.code():
            case grpc.StatusCode.UNAUTHENTICATED if self._key:
                return TopError(f"{address} does not take this API key: see --api-key")
            case grpc.StatusCode.UNAUTHENTICATED:
                return TopError(f"{address} needs an API key: --api-key, or OVCHAT_API_KEY")
            case grpc.StatusCode.UNIMPLEMENTED:
                return TopError(
                    f"{address} does not tell its numbers: it is no ovchat, or an older one, "
                    "without ovchat.v1.ServerService/GetMetrics"
                )
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return UnreachableError(f"{address} has not answered for {TIMEOUT:g} seconds")
        return UnreachableError(
            f"{address} cannot be asked: {error.details()}. Does ovchat run there, and is this "
            "the port of its gRPC, or Envoy's? With TLS it is asked with --cacert."
        )
