"""A request over HTTP, and its answer."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import ApiError
from ovchat_server.providers.kind import BadAnswerError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from ovchat_server.domain.completion import ChunkChoice, Usage
    from ovchat_server.providers.egress import ProviderResponse
    from ovchat_server.providers.kind import AnswerReader

# What the provider does after its last event is not waited for any longer.
END_SECONDS = 0.5


class HttpExchange:
    """A request in the provider's API, and how its answer is read; see Exchange."""

    def __init__(
        self,
        ask: Callable[[], AbstractAsyncContextManager[ProviderResponse]],
        ignored: Sequence[str],
        reader: AnswerReader,
        *,
        streams: bool,
    ) -> None:
        """Send nothing yet.

        Args:
            ask: Sends the request.
            ignored: See Exchange.
            reader: Reads the answer.
            streams: Whether the answer comes as events.
        """
        self.ignored = ignored
        self._ask = ask
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
        async with self._ask() as self._response:
            yield

    def fail(self, error: ApiError) -> None:
        """See Exchange."""
        self._response.fail(error)

    async def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        """See Exchange."""
        reader, response = self._reader, self._response
        if not self._streams:
            for chunk in reader.whole(await response.body()):
                yield chunk
            return
        async with contextlib.aclosing(response.events()) as events:
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
