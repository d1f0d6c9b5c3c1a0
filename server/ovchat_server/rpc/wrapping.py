"""Interceptors as context managers: one that surrounds every RPC, whatever its kind."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import grpc
import grpc.aio

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
# What happens around an RPC, given its context and its full name.
Around: TypeAlias = Callable[[Context, str], AbstractAsyncContextManager[None]]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Behavior: TypeAlias = Callable[..., Any]

FACTORIES = {
    "unary_unary": grpc.unary_unary_rpc_method_handler,
    "unary_stream": grpc.unary_stream_rpc_method_handler,
    "stream_unary": grpc.stream_unary_rpc_method_handler,
    "stream_stream": grpc.stream_stream_rpc_method_handler,
}


class AroundInterceptor(grpc.aio.ServerInterceptor):
    """Puts a context manager around the behaviour of every RPC."""

    def __init__(self, around: Around) -> None:
        """Surround with `around`."""
        self._around = around

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """The handler of the RPC, surrounded; None where there is no such method."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        for kind, factory in FACTORIES.items():
            behavior = getattr(handler, kind)
            if behavior is not None:
                return factory(
                    self._surround(behavior, handler_call_details.method),
                    request_deserializer=handler.request_deserializer,
                    response_serializer=handler.response_serializer,
                )
        raise AssertionError("a handler has a behaviour")

    def _surround(self, behavior: Behavior, method: str) -> Behavior:
        if inspect.isasyncgenfunction(behavior):
            return self._surround_generator(behavior, method)

        async def surrounded(request: object, context: Context) -> Any:  # noqa: ANN401  a message
            async with self._around(context, method):
                return await behavior(request, context)

        return surrounded

    def _surround_generator(self, behavior: Behavior, method: str) -> Behavior:
        async def surrounded(request: object, context: Context) -> AsyncIterator[object]:
            # Closed here, not when the collector finds it: a cancelled RPC must free the
            # engine now.
            async with (
                self._around(context, method),
                contextlib.aclosing(behavior(request, context)) as responses,
            ):
                async for response in responses:
                    yield response

        return surrounded
