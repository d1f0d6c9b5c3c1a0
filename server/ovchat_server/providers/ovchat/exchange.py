"""A call of another ovchat, and its answer."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc.aio

from ovchat_server.providers.ovchat import errors

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from ovchat_server.domain.completion import ChunkChoice, Usage
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.providers.ovchat.answer import AnswerMessage, MessageReader
    from ovchat_server.providers.ovchat.channel import OvchatChannel

    Call: TypeAlias = grpc.aio.UnaryUnaryCall[Any, Any] | grpc.aio.UnaryStreamCall[Any, Any]


class OvchatExchange:
    """A call of the contract, and how its answer is read; see Exchange."""

    # All parameters go through; what has no effect the other ovchat tells when it has ended.
    ignored: Sequence[str] = ()

    def __init__(
        self, channel: OvchatChannel, start: Callable[[], Call], reader: MessageReader
    ) -> None:
        """Call nothing yet.

        Args:
            channel: The channel of the call.
            start: Makes the call.
            reader: Reads the answer.
        """
        self._channel = channel
        self._start = start
        self._reader = reader
        # Since the call was made.
        self._call: Call
        self._messages: AsyncGenerator[AnswerMessage, None]
        # Until it was read.
        self._first: AnswerMessage | None = None
        self._failure: ApiError | None = None

    @property
    def usage(self) -> Usage:
        """See Exchange."""
        return self._reader.usage

    @property
    def complete(self) -> bool:
        """See Exchange."""
        return self._reader.ended

    @contextlib.asynccontextmanager
    async def sent(self) -> AsyncGenerator[None, None]:
        """See Exchange. The first message tells that there is an answer."""
        self._call = self._start()
        self._messages = _messages(self._call)
        self._channel.exchanges.add(self)
        try:
            self._first = await self._next(begun=False)
            yield
        finally:
            self._call.cancel()
            await self._messages.aclose()
            self._channel.exchanges.discard(self)

    def fail(self, error: ApiError) -> None:
        """See Exchange."""
        self._failure = error
        self._call.cancel()

    async def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        """See Exchange."""
        message = self._first
        while message is not None:
            for chunk in self._reader.read(message):
                yield chunk
            message = await self._next(begun=True)

    async def _next(self, *, begun: bool) -> AnswerMessage | None:
        """Return the next message; None behind the last one.

        Raises:
            ApiError: The call failed.
        """
        try:
            return await anext(self._messages, None)
        except grpc.aio.AioRpcError as error:
            channel = self._channel
            raise errors.of_call(channel.provider, error, channel.key, begun=begun) from error
        except asyncio.CancelledError:
            if self._failure is None:
                raise
            raise self._failure from None


async def _messages(call: Call) -> AsyncGenerator[AnswerMessage, None]:
    if isinstance(call, grpc.aio.UnaryUnaryCall):
        yield await call
        return
    async for message in call:
        yield message
