"""Context managers around every RPC, whatever its kind."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from ovchat_server.domain.errors import MalformedMessageError
from ovchat_server.serving.record import current_record

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
# What happens around an RPC, given its context and its full name.
Around: TypeAlias = Callable[[Context, str], AbstractAsyncContextManager[None]]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Behavior: TypeAlias = Callable[..., Any]
Parse: TypeAlias = Callable[[Any], Any]

FACTORIES = {
    "unary_unary": grpc.unary_unary_rpc_method_handler,
    "unary_stream": grpc.unary_stream_rpc_method_handler,
    "stream_unary": grpc.stream_unary_rpc_method_handler,
    "stream_stream": grpc.stream_stream_rpc_method_handler,
}


class AroundInterceptor(grpc.aio.ServerInterceptor):
    """Puts context managers around the behaviour of every RPC.

    All in one interceptor: each is a generator that every message of a stream passes.
    """

    def __init__(self, *arounds: Around) -> None:
        """Surround with `arounds`, the first outermost."""
        self._arounds = arounds

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the handler of the RPC, surrounded."""
        handler = await continuation(handler_call_details)
        if handler is None:
            handler = grpc.stream_stream_rpc_method_handler(_unknown)
        for kind, factory in FACTORIES.items():
            behavior = getattr(handler, kind)
            if behavior is not None:
                parse = _parser(handler.request_deserializer, streamed=handler.request_streaming)
                return factory(
                    # Inside the surrounding: gRPC's own answer to a malformed message is
                    # UNKNOWN or INTERNAL, and a traceback in the log.
                    self._surround(behavior, handler_call_details.method, parse),
                    request_deserializer=None,
                    response_serializer=handler.response_serializer,
                )
        raise AssertionError("a handler has a behaviour")

    @contextlib.asynccontextmanager
    async def _around(self, context: Context, method: str) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for around in self._arounds:
                await stack.enter_async_context(around(context, method))
            yield

    def _surround(self, behavior: Behavior, method: str, parse: Parse) -> Behavior:
        if inspect.isasyncgenfunction(behavior):
            return self._surround_generator(behavior, method, parse)

        async def surrounded(request: Any, context: Context) -> Any:  # noqa: ANN401  messages
            async with self._around(context, method):
                return await behavior(parse(request), context)

        return surrounded

    def _surround_generator(self, behavior: Behavior, method: str, parse: Parse) -> Behavior:
        async def surrounded(request: Any, context: Context) -> AsyncIterator[object]:  # noqa: ANN401
            # Closed here, not when the collector finds it: a cancelled RPC must free the
            # engine now.
            async with (
                self._around(context, method),
                contextlib.aclosing(behavior(parse(request), context)) as responses,
            ):
                record = current_record()
                async for response in responses:
                    record.begun = True
                    yield response

        return surrounded


async def _unknown(requests: object, context: Context) -> AsyncIterator[object]:  # noqa: ARG001
    """Answer as gRPC does where there is no such method; so, what surrounds calls sees it."""
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
    yield


def _parser(deserialize: Parse | None, *, streamed: bool) -> Parse:
    """Return what parses a request, or each in a stream of them."""

    def parsed(request: Any) -> Any:  # noqa: ANN401  messages
        if deserialize is None:
            # An interceptor further in does it.
            return request
        try:
            return deserialize(request)
        except DecodeError as error:
            raise MalformedMessageError("The request is no message of this method.") from error

    async def each_parsed(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield parsed(request)

    return each_parsed if streamed else parsed
