"""The kinds of calls that the REST door serves, each as an RPC with HttpBody messages.

All of them read a request, call into `serving` and encode what comes of it. An API is one of
these with its own reader and encoders.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.api import httpbody_pb2

from ovchat_server.api.errors import ApiError, InternalError
from ovchat_server.rest.body import event_stream, json_body, json_pieces, name_ignored
from ovchat_server.rest.codec import GeneratingRequest, ReadRequest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from google.protobuf.message import Message

    from ovchat_server.api.generation import StreamOptions
    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.rest.body_reader import BodyReader
    from ovchat_server.rest.codec import AnswerEncoder, ErrorEncoder, RequestReader
    from ovchat_server.serving.answer import Answer

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Bodies: TypeAlias = "AsyncGenerator[httpbody_pb2.HttpBody, None]"
Generating = TypeVar("Generating", bound=GeneratingRequest)
Request = TypeVar("Request", bound=ReadRequest)
Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class Api(Protocol):
    """A call of a public API."""

    @property
    def errors(self) -> ErrorEncoder:
        """What its errors look like."""
        ...

    def handler(self, bodies: BodyReader) -> Handler:
        """Return the RPC that serves the requests which `bodies` reads."""
        ...


@dataclass(frozen=True, slots=True)
class GenerationApi(Generic[Generating]):
    """Generates an answer, sent whole or as a stream of events.

    Attributes:
        read: Reads the request.
        answer: Starts to answer it.
        encoder: Makes the encoder of an answer to it.
        errors: Encodes errors before the answer has begun.
    """

    read: RequestReader[Generating]
    answer: Callable[[Generating], Awaitable[Answer]]
    encoder: Callable[[Generating], AnswerEncoder]
    errors: ErrorEncoder

    def handler(self, bodies: BodyReader) -> Handler:
        """Return the RPC; see Api."""

        async def serve(body: httpbody_pb2.HttpBody, context: Context) -> Bodies:
            request = await bodies.read(self.read, body)
            answer = await self.answer(request)
            encoding = _Encoding(self.encoder(request), bodies, request, context)
            parts = (
                encoding.whole(answer)
                if request.stream is None
                else encoding.events(answer, request.stream)
            )
            async with contextlib.aclosing(parts):
                async for part in parts:
                    yield part

        return _posted(serve)


@dataclass(frozen=True, slots=True)
class CallApi(Generic[Request, Result]):
    """Answers at once, with a JSON object of any size.

    Attributes:
        read: Reads the request.
        call: Answers it.
        encode: Makes the body of the answer.
        errors: Encodes errors.
    """

    read: RequestReader[Request]
    call: Callable[[Request], Awaitable[Result]]
    encode: Callable[[Result], JsonObject]
    errors: ErrorEncoder

    def handler(self, bodies: BodyReader) -> Handler:
        """Return the RPC; see Api."""

        async def serve(body: httpbody_pb2.HttpBody, context: Context) -> Bodies:
            request = await bodies.read(self.read, body)
            result = await self.call(request)
            await name_ignored(request.ignored, context)
            for piece in json_pieces(self.encode(result)):
                yield piece

        return _posted(serve)


@dataclass(frozen=True, slots=True)
class GetApi:
    """Answers a GET, whose path and query are fields of a message.

    Attributes:
        message: The type of that message.
        get: Makes the body of the answer.
        errors: Encodes errors.
    """

    message: type[Message]
    get: Callable[[Any], JsonObject]
    errors: ErrorEncoder

    def handler(self, bodies: BodyReader) -> Handler:  # noqa: ARG002  there is none to read
        """Return the RPC; see Api."""

        async def serve(request: Message, context: Context) -> httpbody_pb2.HttpBody:  # noqa: ARG001
            return json_body(self.get(request))

        return grpc.unary_unary_rpc_method_handler(
            serve,
            request_deserializer=self.message.FromString,
            response_serializer=httpbody_pb2.HttpBody.SerializeToString,
        )


@dataclass(frozen=True, slots=True)
class _Encoding:
    encoder: AnswerEncoder
    bodies: BodyReader
    request: ReadRequest
    context: Context

    async def whole(self, answer: Answer) -> Bodies:
        completion = await answer.whole()
        pieces = await self.bodies.workers.write(
            lambda whole: json_pieces(self.encoder.whole(whole)), completion
        )
        # Not before there is an answer: an error's status needs untouched headers.
        await name_ignored(self.request.ignored, self.context)
        for piece in pieces:
            yield piece

    async def events(self, answer: Answer, options: StreamOptions) -> Bodies:
        began = False
        async with contextlib.aclosing(answer.stream(options)) as chunks:
            try:
                async for chunk in chunks:
                    if not began:
                        await name_ignored(self.request.ignored, self.context)
                        began = True
                    if events := await self.bodies.workers.write(self.encoder.chunk, chunk):
                        yield event_stream(events)
            except Exception as error:
                if not began:
                    raise
                # SDKs take a stream that just ends for a whole answer: a broken one must say so.
                yield event_stream(self.encoder.failure(_reported(error)))
                return
        yield event_stream(self.encoder.end())


def _posted(
    serve: Callable[[httpbody_pb2.HttpBody, Context], AsyncIterator[httpbody_pb2.HttpBody]],
) -> Handler:
    # A stream even where the answer is whole: one RPC serves both, and Envoy refuses messages of
    # 8 MiB and more.
    return grpc.unary_stream_rpc_method_handler(
        serve,
        request_deserializer=httpbody_pb2.HttpBody.FromString,
        response_serializer=httpbody_pb2.HttpBody.SerializeToString,
    )


def _reported(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    logger.error("a stream failed", exc_info=error)
    return InternalError("The server met an internal error.")
