"""Ends streams whose clients have stopped reading."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ovchat_server.rpc.middleware import Behavior, Context, Handler


class IdleInterceptor(grpc.aio.ServerInterceptor):
    """Cancels a stream when its client reads nothing for too long.

    A message waits while HTTP/2's flow-control windows are full, and tokens generated meanwhile are
    merged. Without a limit, a client that stays connected would hold the stream for ever. gRPC
    keeps the one waiting message until the connection ends, see server.CONNECTION_AGE.
    """

    def __init__(self, seconds: float) -> None:
        """Wait for a client for so many seconds."""
        self._seconds = seconds

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the handler of the RPC, watched; None if there is no such method."""
        handler = await continuation(handler_call_details)
        if handler is None or not inspect.isasyncgenfunction(handler.unary_stream):
            return handler
        return grpc.unary_stream_rpc_method_handler(
            self._watched(handler.unary_stream),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _watched(self, behavior: Behavior) -> Behavior:
        async def watched(request: Any, context: Context) -> AsyncIterator[object]:  # noqa: ANN401
            watch = _Watch(self._seconds)
            async with contextlib.aclosing(behavior(request, context)) as responses:
                try:
                    async for response in responses:
                        # Waits until the transport has taken the message and asks for the next.
                        watch.waiting_since = watch.loop.time()
                        yield response
                        watch.waiting_since = None
                finally:
                    watch.timer.cancel()

        return watched


class _Watch:
    """Checks a stream now and then, which is cheaper than a timer for each message."""

    def __init__(self, seconds: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.waiting_since: float | None = None
        self._seconds = seconds
        self._task = asyncio.current_task()
        self.timer = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        now = self.loop.time()
        since = now if self.waiting_since is None else self.waiting_since
        if now - since < self._seconds:
            self.timer = self.loop.call_at(since + self._seconds, self._look)
        elif self._task:
            self._task.cancel()
