"""Middleware: context managers around the handler of every RPC, unary or streaming."""

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
# Given the context of an RPC and its full method name.
Middleware: TypeAlias = Callable[[Context, str], AbstractAsyncContextManager[None]]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Behavior: TypeAlias = Callable[..., Any]
Parse: TypeAlias = Callable[[Any], Any]

FACTORIES = {
    "unary_unary": grpc.unary_unary_rpc_method_handler,
    "unary_stream": grpc.unary_stream_rpc_method_handler,
    "stream_unary": grpc.stream_unary_rpc_method_handler,
    "stream_stream": grpc.stream_stream_rpc_method_handler,
}


class MiddlewareInterceptor(grpc.aio.ServerInterceptor):
    """Runs the handler of every RPC inside a stack of middleware.

    One interceptor for all of them: each further one would be one more generator that every
    message of a stream passes through.
    """

    def __init__(self, *middleware: Middleware) -> None:
        """Run handlers inside `middleware`; the first is the outermost."""
        self._middleware = middleware

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the handler of the RPC, wrapped in the middleware."""
        handler = await continuation(handler_call_details)
        if handler is None:
            handler = grpc.stream_stream_rpc_method_handler(_unknown)
        for kind, factory in FACTORIES.items():
            behavior = getattr(handler, kind)
            if behavior is not None:
                parse = _parser(handler.request_deserializer, streamed=handler.request_streaming)
                return factory(
                    # Requests are parsed inside the middleware: gRPC itself answers a malformed
                    # message with UNKNOWN or INTERNAL, and logs a traceback.
                    self._wrap(behavior, handler_call_details.method, parse),
                    request_deserializer=None,
                    response_serializer=handler.response_serializer,
                )
        raise AssertionError("a handler has a behavior")

    @contextlib.asynccontextmanager
    async def _entered(self, context: Context, method: str) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for middleware in self._middleware:
                await stack.enter_async_context(middleware(context, method))
            yield

    def _wrap(self, behavior: Behavior, method: str, parse: Parse) -> Behavior:
        if inspect.isasyncgenfunction(behavior):
            return self._wrap_generator(behavior, method, parse)

        async def wrapped(request: Any, context: Context) -> Any:  # noqa: ANN401  messages
            async with self._entered(context, method):
                return await behavior(parse(request), context)

        return wrapped

    def _wrap_generator(self, behavior: Behavior, method: str, parse: Parse) -> Behavior:
        async def wrapped(request: Any, context: Context) -> AsyncIterator[object]:  # noqa: ANN401
            # Close the generator here instead of leaving it to the garbage collector: a
            # cancelled RPC must free the engine at once.
            async with (
                self._entered(context, method),
                contextlib.aclosing(behavior(parse(request), context)) as responses,
            ):
                record = current_record()
                async for response in responses:
                    record.begun = True
                    yield response

        return wrapped


async def _unknown(requests: object, context: Context) -> AsyncIterator[object]:  # noqa: ARG001
    """Answer as gRPC does for an unknown method, but inside the middleware: it is logged, too."""
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
    yield


def _parser(deserialize: Parse | None, *, streamed: bool) -> Parse:
    """Return a function that parses a request, or each request of a stream."""

    def parsed(request: Any) -> Any:  # noqa: ANN401  messages
        if deserialize is None:
            # An inner interceptor parses it.
            return request
        try:
            return deserialize(request)
        except DecodeError as error:
            message = "The request could not be parsed as this method's request message."
            raise MalformedMessageError(message) from error

    async def each_parsed(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield parsed(request)

    return each_parsed if streamed else parsed
