"""Answers as HTTP bodies: one of JSON, or the frames of an event stream."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ovchat_server.api.errors import ApiError, InternalError
from ovchat_server.rest import wire
from ovchat_server.rest.body import end_of_events, event, json_pieces, name_ignored
from ovchat_server.serving.writing import written

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    import grpc.aio
    from google.api import httpbody_pb2

    from ovchat_server.api.chat import ChatRequest
    from ovchat_server.api.completion import Chunk, Completion
    from ovchat_server.api.generation import StreamOptions
    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.api.text import TextRequest
    from ovchat_server.serving.answer import Answer

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
) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
    """The bodies of an answer, whole or streamed as was asked for."""
    if asked.stream is None:
        return _whole(answer, forms.whole, asked.ignored, context)
    return _events(answer, asked.stream, forms.chunk, asked.ignored, context)


async def _whole(
    answer: Answer,
    write: Callable[[Completion], JsonObject],
    ignored: Sequence[str],
    context: grpc.aio.ServicerContext[Any, Any],
) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
    """The whole answer, in pieces of its JSON; the parameters that were ignored in a header."""
    whole = await answer.whole()
    pieces = await written(lambda said: json_pieces(write(said)), whole)
    # Not before there is an answer: an error's status needs untouched headers.
    await name_ignored(ignored, context)
    for piece in pieces:
        yield piece


async def _events(
    answer: Answer,
    options: StreamOptions,
    write: Callable[[Chunk, StreamOptions], JsonObject],
    ignored: Sequence[str],
    context: grpc.aio.ServicerContext[Any, Any],
) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
    """The events of an answer, otherwise as `_whole`.

    Once it began, an error is an event of its own: the SDKs take a stream that just ends for a
    whole answer, so a broken one must say so.
    """

    def body(chunk: Chunk) -> httpbody_pb2.HttpBody:
        return event(write(chunk, options))

    began = False
    async with contextlib.aclosing(answer.stream(options)) as chunks:
        try:
            async for chunk in chunks:
                if not began:
                    await name_ignored(ignored, context)
                    began = True
                yield await written(body, chunk)
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
