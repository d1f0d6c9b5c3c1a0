"""The kinds of calls that the REST door serves, each as an RPC with HttpBody messages.

All of them read a request, call into `serving` and encode what comes of it. An API is one of
these with its own reader and encoders.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.api import httpbody_pb2

from ovchat_server.domain.completion import Chunk
from ovchat_server.domain.errors import ApiError, InternalError
from ovchat_server.rest.keep_alive import Moment, with_moments
from ovchat_server.rest.response_body import (
    event_stream,
    json_body,
    json_pieces,
    send_hints,
)
from ovchat_server.serving.codec_threads import scored_tokens
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

    from google.protobuf.message import Message

    from ovchat_server.domain.generation import StreamOptions
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.rest.codec import AnswerEncoder, ErrorEncoder, RequestReader
    from ovchat_server.rest.request_body import BodyReader
    from ovchat_server.serving.answer import Answer
    from ovchat_server.serving.codec_threads import CodecThreads

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Bodies: TypeAlias = "AsyncGenerator[httpbody_pb2.HttpBody, None]"
Generating = TypeVar("Generating", bound="_GenerationRequest")
Request = TypeVar("Request", bound="_Request")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class _Request(Protocol):
    @property
    def ignored(self) -> Sequence[str]: ...  # names of parameters


class _GenerationRequest(_Request, Protocol):
    @property
    def stream(self) -> StreamOptions | None: ...  # None: the whole answer at once


class Api(Protocol):
    """A call of a public API."""

    @property
    def errors(self) -> ErrorEncoder:
        """Encodes its errors."""
        ...

    def handler(self, bodies: BodyReader) -> Handler:
        """Return the RPC that serves the requests which `bodies` reads."""
        ...


@dataclass(frozen=True, slots=True)
class GenerationApi(Generic[Generating]):
    """Generates an answer, sent whole or as a stream of events.

    Attributes:
        answer: Answers a request.
        encoder: Makes the encoder of an answer.
        errors: Encodes errors before the answer has begun.
        silence: Seconds without a chunk after which a stream is kept alive, once the engine
            works on it.
    """

    read: RequestReader[Generating]
    answer: Callable[[Generating], Awaitable[Answer]]
    encoder: Callable[[Generating], AnswerEncoder]
    errors: ErrorEncoder
    silence: float = 15.0

    def handler(self, bodies: BodyReader) -> Handler:
        """Return the RPC; see Api."""
        return streaming(partial(self.serve, bodies), httpbody_pb2.HttpBody)

    async def serve(
        self, bodies: BodyReader, body: httpbody_pb2.HttpBody, context: Context
    ) -> Bodies:
        """Yield the answer to a request.

        Args:
            bodies: Reads the request.
            body: The request.
            context: That of the RPC.
        """
        request = await bodies.read(self.read, body)
        answer = await self.answer(request)
        encoder = self.encoder(request)
        if request.stream is None:
            parts = _whole(answer, encoder, bodies.threads)
        else:
            # Not in the queue: an event commits the status, which may yet be 429.
            chunks = with_moments(answer.stream(request.stream), answer.admission, self.silence)
            parts = _events(answer, chunks, encoder, bodies.threads)
        named = False
        async with contextlib.aclosing(parts):
            async for part in parts:
                # Only now that there is an answer: the status of an error needs unsent headers.
                if not named:
                    ignored = (*request.ignored, *answer.ignored)
                    await send_hints(ignored, answer.unenforced, context)
                    named = True
                yield part


def _never(_: object) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class CallApi(Generic[Request, Result]):
    """Answers at once, with a JSON object of any size.

    Attributes:
        encode: Makes the body of the answer.
        is_large: Whether that takes so long that it is done in a thread.
    """

    read: RequestReader[Request]
    call: Callable[[Request], Awaitable[Result]]
    encode: Callable[[Result], JsonObject]
    errors: ErrorEncoder
    is_large: Callable[[Result], bool] = _never

    def handler(self, bodies: BodyReader) -> Handler:
        """Return the RPC; see Api."""
        return streaming(partial(self.serve, bodies), httpbody_pb2.HttpBody)

    async def serve(
        self, bodies: BodyReader, body: httpbody_pb2.HttpBody, context: Context
    ) -> Bodies:
        """Yield the answer to a request; see GenerationApi.serve."""
        request = await bodies.read(self.read, body)
        result = await self.call(request)
        pieces = await bodies.threads.writers.run(
            lambda: json_pieces(self.encode(result)), in_place=not self.is_large(result)
        )
        await send_hints(request.ignored, (), context)
        for piece in pieces:
            yield piece


@dataclass(frozen=True, slots=True)
class GetApi:
    """Answers a GET or a DELETE, whose path and query are fields of a message.

    Attributes:
        message: The type of that message.
        get: Makes the body of the answer.
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
class LargeGetApi:
    """Answers a GET with a JSON object of any size; see GetApi.

    Attributes:
        get: Finds what is asked for, and returns what makes the body of it, in a thread.
    """

    message: type[Message]
    get: Callable[[Any], Callable[[], JsonObject]]
    errors: ErrorEncoder

    def handler(self, bodies: BodyReader) -> Handler:
        """Return the RPC; see Api."""

        async def serve(request: Message, context: Context) -> Bodies:  # noqa: ARG001
            make = self.get(request)
            for piece in await bodies.threads.writers.run(lambda: json_pieces(make())):
                yield piece

        return streaming(serve, self.message)


async def _whole(answer: Answer, encoder: AnswerEncoder, threads: CodecThreads) -> Bodies:
    completion = await answer.whole()
    for piece in await threads.write(lambda whole: json_pieces(encoder.whole(whole)), completion):
        yield piece


async def _events(
    answer: Answer,
    stream: AsyncGenerator[Chunk | Moment, None],
    encoder: AnswerEncoder,
    threads: CodecThreads,
) -> Bodies:
    opened = began = False
    tokens = 0
    async with contextlib.aclosing(stream) as items:
        try:
            async for item in items:
                # The first chunk may come together with the admission.
                events = b"" if opened else encoder.begin(answer.info)
                opened = True
                if item is Moment.SILENCE:
                    events += encoder.keep_alive()
                elif isinstance(item, Chunk):
                    tokens += scored_tokens(item)
                    events += await threads.write(encoder.chunk, item)
                if events:
                    began = True
                    yield event_stream(events)
        except Exception as error:
            if not began:
                raise
            # To SDKs a stream that just ends is complete: a broken one must end with an error.
            current_record().error = reported = _reported(error)
            yield event_stream(encoder.failure(reported))
            return
    # Some APIs repeat all of the answer there.
    yield event_stream(await threads.write_all(encoder.end, tokens))


def streaming(
    serve: Callable[[Any, Context], AsyncIterator[httpbody_pb2.HttpBody]], message: type[Message]
) -> Handler:
    """Return an RPC that answers with a stream of bodies.

    Args:
        serve: Yields the bodies of an answer.
        message: The type of the request.
    """
    # A stream even if the answer is whole: one RPC serves both, and Envoy refuses messages of
    # 8 MiB and more.
    return grpc.unary_stream_rpc_method_handler(
        serve,
        request_deserializer=message.FromString,
        response_serializer=httpbody_pb2.HttpBody.SerializeToString,
    )


def _reported(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    logger.error("An internal error ended a stream", exc_info=error)
    return InternalError("Internal server error.")
