"""Middleware: context managers around the handler of every RPC, unary or streaming."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from ovchat_server.domain.errors import MalformedMessageError
from ovchat_server.serving.record import UNKNOWN_RPC, RequestRecord, begin_record

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
# Given the context of an RPC and its full method name.
Middleware: TypeAlias = Callable[[Context, str], AbstractAsyncContextManager[None]]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Behavior: TypeAlias = Callable[..., Any]
# Given the context of an RPC, whose record it yields.
Entered: TypeAlias = Callable[[Context], AbstractAsyncContextManager[RequestRecord]]
Parse: TypeAlias = Callable[[Any], Any]
# Given the full method name and the headers.
Refuses: TypeAlias = Callable[[str, Iterable[tuple[str, str | bytes]]], bool]

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

    def __init__(self, *middleware: Middleware, refuses: Refuses = lambda *_: False) -> None:
        """Run handlers inside `middleware`; the first is the outermost.

        Args:
            middleware: What handlers run in.
            refuses: Tells of a call that middleware will refuse it, whatever its message is.
        """
        self._refuses = refuses
        self._middleware = middleware

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the handler of the RPC, wrapped in the middleware."""
        handler, method = await continuation(handler_call_details), handler_call_details.method
        rpc = method.lstrip("/") if handler else UNKNOWN_RPC
        if handler is None or self._refuses(method, handler_call_details.invocation_metadata):
            # Of a stream, gRPC receives nothing that is not asked for.
            handler = grpc.stream_stream_rpc_method_handler(_unknown)
        for kind, factory in FACTORIES.items():
            behavior = getattr(handler, kind)
            if behavior is not None:
                parse = _parser(handler.request_deserializer, streamed=handler.request_streaming)
                return factory(
                    # Requests are parsed inside the middleware: gRPC itself answers a malformed
                    # message with UNKNOWN or INTERNAL, and logs a traceback.
                    _wrapped(behavior, partial(self._entered, method, rpc), parse),
                    request_deserializer=None,
                    response_serializer=handler.response_serializer,
                )
        raise AssertionError("a handler has a behavior")

    @contextlib.asynccontextmanager
    async def _entered(
        self, method: str, rpc: str, context: Context
    ) -> AsyncIterator[RequestRecord]:
        record = begin_record(rpc)
        async with contextlib.AsyncExitStack() as stack:
            for middleware in self._middleware:
                await stack.enter_async_context(middleware(context, method))
            yield record


def _wrapped(behavior: Behavior, entered: Entered, parse: Parse) -> Behavior:
    async def wrapped(request: Any, context: Context) -> Any:  # noqa: ANN401  messages
        async with entered(context):
            return await behavior(parse(request), context)

    async def wrapped_generator(request: Any, context: Context) -> AsyncIterator[object]:  # noqa: ANN401
        # Close the generator here instead of leaving it to the garbage collector: a cancelled RPC
        # must free the engine at once.
        async with (
            entered(context) as record,
            contextlib.aclosing(behavior(parse(request), context)) as responses,
        ):
            async for response in responses:
                record.begun = True
                yield response

    return wrapped_generator if inspect.isasyncgenfunction(behavior) else wrapped


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
