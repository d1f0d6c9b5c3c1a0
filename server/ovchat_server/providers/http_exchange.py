"""A request over HTTP, and its answer."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.errors import ApiError
from ovchat_server.providers.errors import without_key
from ovchat_server.providers.kind import BadAnswerError, ReportedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ovchat_server.domain.completion import ChunkChoice, Usage
    from ovchat_server.providers.egress import ProviderResponse
    from ovchat_server.providers.http_client import HttpClient
    from ovchat_server.providers.kind import AnswerReader, WireRequest

# What the provider does after its last event is not waited for any longer.
END_SECONDS = 0.5
# Reading so much takes a millisecond.
MAX_BYTES_IN_PLACE = 1 << 14


class HttpExchange:
    """A request in the provider's API, and how its answer is read; see Exchange."""

    def __init__(
        self,
        client: HttpClient,
        wire: WireRequest,
        reader: AnswerReader,
        *,
        streams: bool,
    ) -> None:
        """Send nothing yet.

        Args:
            client: Sends the request.
            wire: The request.
            reader: Reads the answer.
            streams: Whether the answer comes as events.
        """
        self.ignored = wire.ignored
        self._client = client
        self._path = wire.path
        self._body = msgspec.json.encode(wire.body)
        self._reader = reader
        self._streams = streams
        # Since the request was sent.
        self._response: ProviderResponse

    @property
    def usage(self) -> Usage:
        """See Exchange."""
        return self._reader.usage

    @property
    def complete(self) -> bool:
        """See Exchange."""
        return self._reader.complete

    @contextlib.asynccontextmanager
    async def sent(self) -> AsyncGenerator[None, None]:
        """See Exchange."""
        async with self._client.ask(self._path, self._body) as self._response:
            yield

    def fail(self, error: ApiError) -> None:
        """See Exchange."""
        self._response.fail(error)

    async def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        """See Exchange."""
        read = self._streamed if self._streams and not self._response.is_json else self._whole
        async with contextlib.aclosing(read()) as chunks:
            try:
                async for chunk in chunks:
                    yield chunk
            except ReportedError as error:
                raise ReportedError(without_key(error.message, self._client.key)) from None

    async def _whole(self) -> AsyncGenerator[ChunkChoice, None]:
        body = await self._response.body()
        in_place = len(body) <= MAX_BYTES_IN_PLACE
        read = self._client.workers.run(lambda: [*self._reader.whole(body)], in_place=in_place)
        for chunk in await read:
            yield chunk

    async def _streamed(self) -> AsyncGenerator[ChunkChoice, None]:
        reader = self._reader
        async with contextlib.aclosing(self._response.events()) as events:
            async for event in events:
                for chunk in reader.event(event):
                    yield chunk
                if reader.ended:
                    break
            # Until its end is read, the connection cannot serve the next request.
            with contextlib.suppress(TimeoutError, ApiError, BadAnswerError):
                async with asyncio.timeout(END_SECONDS):
                    async for _ in events:
                        pass
