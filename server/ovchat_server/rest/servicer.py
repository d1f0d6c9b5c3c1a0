"""The OpenAI-shaped service, behind Envoy."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, TypeAlias

from ovchat.v1 import rest_service_pb2_grpc
from ovchat_server.api.chat_request import read_chat_request
from ovchat_server.api.errors import ApiError, InternalError, UnavailableError
from ovchat_server.rest import wire
from ovchat_server.rest.body import (
    ascii_json,
    end_of_events,
    event,
    header_list,
    json_body,
    read_json_object,
)
from ovchat_server.rest.tokenization import detokenize, tokenize

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    import grpc.aio
    from google.api import httpbody_pb2

    from ovchat.v1 import rest_service_pb2
    from ovchat_server.api.chat import ChatRequest
    from ovchat_server.api.json_value import JsonValue
    from ovchat_server.serving.chat import ChatCompletions
    from ovchat_server.serving.models import ModelRegistry
    from ovchat_server.serving.tokenization import Tokenization
    from ovchat_server.serving.versions import Versions

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

logger = logging.getLogger(__name__)


class RestServicer(rest_service_pb2_grpc.RestServiceServicer):
    """ovchat.v1.RestService."""

    def __init__(
        self,
        chat: ChatCompletions,
        models: ModelRegistry,
        tokenization: Tokenization,
        versions: Versions,
    ) -> None:
        """Answer with `chat` and `tokenization`, tell of `models` and `versions`."""
        self._chat = chat
        self._models = models
        self._tokenization = tokenization
        self._versions = versions

    async def CreateChatCompletion(
        self, request: httpbody_pb2.HttpBody, context: Context
    ) -> AsyncIterator[httpbody_pb2.HttpBody]:
        """POST a chat completion, whole or streamed as the body says."""
        chat_request = read_chat_request(read_json_object(request))
        bodies = self._stream(chat_request) if chat_request.stream else self._create(chat_request)
        async with contextlib.aclosing(bodies):
            first = True
            async for body in bodies:
                if first and chat_request.ignored:
                    # Not before there is an answer: an error's status needs untouched headers.
                    ignored = header_list(chat_request.ignored)
                    await context.send_initial_metadata((("x-ignored-parameters", ignored),))
                first = False
                yield body

    async def Tokenize(
        self, request: httpbody_pb2.HttpBody, context: Context
    ) -> AsyncIterator[httpbody_pb2.HttpBody]:
        """POST texts or a conversation, get their tokens."""
        for body in await tokenize(self._tokenization, request, context):
            yield body

    async def Detokenize(
        self, request: httpbody_pb2.HttpBody, context: Context
    ) -> AsyncIterator[httpbody_pb2.HttpBody]:
        """POST tokens, get their text."""
        for body in await detokenize(self._tokenization, request, context):
            yield body

    async def ListModels(
        self,
        request: rest_service_pb2.RestServiceListModelsRequest,
        context: Context,
    ) -> httpbody_pb2.HttpBody:
        """The models, or those of a type and a provider."""
        models: list[JsonValue] = [
            wire.model(status)
            for status in self._models.statuses()
            if status.matches(request.type, request.provider)
        ]
        return json_body({"object": "list", "data": models})

    async def GetModel(
        self,
        request: rest_service_pb2.RestServiceGetModelRequest,
        context: Context,
    ) -> httpbody_pb2.HttpBody:
        """One model."""
        return json_body(wire.model(self._models.get(request.id).status))

    async def GetLiveness(
        self,
        request: rest_service_pb2.RestServiceGetLivenessRequest,
        context: Context,
    ) -> httpbody_pb2.HttpBody:
        """The server is up, or this would not run."""
        return json_body({"status": "ok"})

    async def GetReadiness(
        self,
        request: rest_service_pb2.RestServiceGetReadinessRequest,
        context: Context,
    ) -> httpbody_pb2.HttpBody:
        """Every model answers, or which does not."""
        if unready := self._models.unready():
            raise UnavailableError(f"Not ready: {unready}.", retry_after=1)
        return json_body({"status": "ok"})

    async def GetVersion(
        self,
        request: rest_service_pb2.RestServiceGetVersionRequest,
        context: Context,
    ) -> httpbody_pb2.HttpBody:
        """Which versions run."""
        versions = self._versions
        return json_body(
            {
                "version": versions.ovchat,
                "openvino": versions.openvino,
                "openvino_genai": versions.openvino_genai,
            }
        )

    async def _create(self, request: ChatRequest) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
        yield json_body(wire.chat_completion(await self._chat.create(request)))

    async def _stream(self, request: ChatRequest) -> AsyncGenerator[httpbody_pb2.HttpBody, None]:
        """The events of an answer. Once it began, an error is an event of its own.

        The SDKs take a stream that just ends for a whole answer, so a broken one must say so.
        """
        began = False
        chunks = self._chat.stream(request)
        async with contextlib.aclosing(chunks):
            try:
                async for chunk in chunks:
                    began = True
                    yield event(wire.chat_chunk(chunk, include_usage=request.include_usage))
            except Exception as error:
                if not began:
                    raise
                yield event(wire.error(_told(error)))
        yield end_of_events()


def rest_error(error: ApiError) -> str:
    """The body of an error, as text that a header can carry."""
    return ascii_json(wire.error(error))


def _told(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    logger.error("a stream failed", exc_info=error)
    return InternalError("The server met an internal error.")
