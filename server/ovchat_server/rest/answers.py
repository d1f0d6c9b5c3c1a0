"""Answers as HTTP bodies: one of JSON, or the frames of an event stream."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ovchat_server.api.errors import ApiError, InternalError
from ovchat_server.rest import wire
from ovchat_server.rest.body import end_of_events, event, json_pieces, name_ignored

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence

    import grpc.aio
    from google.api import httpbody_pb2

    from ovchat_server.api.chat import ChatRequest
    from ovchat_server.api.completion import Chunk, Completion
    from ovchat_server.api.generation import StreamOptions
    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.api.text import TextRequest
    from ovchat_server.serving.answer import Answer
    from ovchat_server.serving.codec_workers import CodecWorkers

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Forms:
    """How an endpoint's answers are written: whole, and each part of a stream."""

    whole: Callable[[Completion], JsonObject]
    chunk: Callable[[Chunk, StreamOptions], JsonObject]


def answer_bodies(
    answer: Answer,
    asked: ChatRequest | TextRequest,
    forms: Forms,
    context: grpc.aio.ServicerContext[Any, Any],
    workers: CodecWorkers,
) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
    """The bodies of an answer, whole or streamed as was asked for."""
    if (options := asked.stream) is None:

        def encode(whole: Completion) -> Awaitable[Iterator[httpbody_pb2.HttpBody]]:
            return workers.write(lambda answer: json_pieces(forms.whole(answer)), whole)

        return _whole(answer, encode, asked.ignored, context)

    def encode_chunk(chunk: Chunk) -> Awaitable[httpbody_pb2.HttpBody]:
        return workers.write(lambda part: event(forms.chunk(part, options)), chunk)

    return _events(answer.stream(options), encode_chunk, asked.ignored, context)


async def _whole(
    answer: Answer,
    encode: Callable[[Completion], Awaitable[Iterator[httpbody_pb2.HttpBody]]],
    ignored: Sequence[str],
    context: grpc.aio.ServicerContext[Any, Any],
) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
    """The whole answer, in pieces of its JSON; the parameters that were ignored in a header."""
    pieces = await encode(await answer.whole())
    # Not before there is an answer: an error's status needs untouched headers.
    await name_ignored(ignored, context)
    for piece in pieces:
        yield piece


async def _events(
    stream: AsyncGenerator[Chunk, None],
    encode: Callable[[Chunk], Awaitable[httpbody_pb2.HttpBody]],
    ignored: Sequence[str],
    context: grpc.aio.ServicerContext[Any, Any],
) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
    """The events of an answer, otherwise as `_whole`.

    Once it began, an error is an event of its own: the SDKs take a stream that just ends for a
    whole answer, so a broken one must say so.
    """
    began = False
    async with contextlib.aclosing(stream) as chunks:
        try:
            async for chunk in chunks:
                if not began:
                    await name_ignored(ignored, context)
                    began = True
                yield await encode(chunk)
        except Exception as error:
            if not began:
                raise
            yield event(wire.error(_told(error)))
    yield end_of_events()


def _told(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    logger.error("a stream failed", exc_info=error)
    return InternalError("The server met an internal error.")
