"""Answers as HTTP bodies: one of JSON, or the frames of an event stream."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

from ovchat_server.api.errors import ApiError, InternalError
from ovchat_server.rest import wire
from ovchat_server.rest.body import end_of_events, event, json_pieces, name_ignored

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    import grpc.aio
    from google.api import httpbody_pb2

    from ovchat_server.api.completion import Chunk, Completion
    from ovchat_server.api.generation import StreamOptions
    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.serving.answer import Answer

logger = logging.getLogger(__name__)


async def answer_bodies(
    answer: Answer,
    options: StreamOptions | None,
    write: Callable[[Completion], JsonObject],
    write_chunk: Callable[[Chunk, StreamOptions], JsonObject],
) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
    """The whole answer, in pieces of its JSON; with `options` its events instead."""
    if options is None:
        for piece in json_pieces(write(await answer.whole())):
            yield piece
        return
    async with contextlib.aclosing(_events(answer, options, write_chunk)) as events:
        async for body in events:
            yield body


async def _events(
    answer: Answer, options: StreamOptions, write: Callable[[Chunk, StreamOptions], JsonObject]
) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
    """The events of an answer. Once it began, an error is an event of its own.

    The SDKs take a stream that just ends for a whole answer, so a broken one must say so.
    """
    began = False
    chunks = answer.stream(options)
    async with contextlib.aclosing(chunks):
        try:
            async for chunk in chunks:
                began = True
                yield event(write(chunk, options))
        except Exception as error:
            if not began:
                raise
            yield event(wire.error(_told(error)))
    yield end_of_events()


async def naming_ignored(
    bodies: AsyncGenerator[httpbody_pb2.HttpBody, None],
    ignored: Sequence[str],
    context: grpc.aio.ServicerContext[Any, Any],
) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
    """The bodies, with the parameters that were ignored named in a header."""
    first = True
    async for body in bodies:
        if first:
            # Not before there is an answer: an error's status needs untouched headers.
            await name_ignored(ignored, context)
            first = False
        yield body


def _told(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    logger.error("a stream failed", exc_info=error)
    return InternalError("The server met an internal error.")
