"""The OpenAI-shaped service, behind Envoy."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ovchat.v1 import rest_service_pb2_grpc
from ovchat_server.api.errors import UnavailableError
from ovchat_server.rest import wire
from ovchat_server.rest.answers import Forms, answer_bodies
from ovchat_server.rest.body import ascii_json, json_body
from ovchat_server.rest.reading import read_chat, read_text
from ovchat_server.rest.tokenization import detokenize, tokenize

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio
    from google.api import httpbody_pb2

    from ovchat.v1 import rest_service_pb2
    from ovchat_server.api.errors import ApiError
    from ovchat_server.api.json_value import JsonValue
    from ovchat_server.rest.reading import BodyReader
    from ovchat_server.serving.chat import ChatCompletions
    from ovchat_server.serving.models import ModelRegistry
    from ovchat_server.serving.text import TextCompletions
    from ovchat_server.serving.tokenization import Tokenization
    from ovchat_server.serving.versions import Versions

CHAT = Forms(wire.chat_completion, wire.chat_chunk)
TEXT = Forms(wire.text_completion, wire.text_chunk)

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


@dataclass(frozen=True, slots=True)
class RestServices:
    """What the REST door offers."""

    chat: ChatCompletions
    texts: TextCompletions
    tokenization: Tokenization
    models: ModelRegistry
    versions: Versions


class RestServicer(rest_service_pb2_grpc.RestServiceServicer):
    """ovchat.v1.RestService."""

    def __init__(self, services: RestServices, bodies: BodyReader) -> None:
        """Offer `services` to the requests in `bodies`."""
        self._services = services
        self._bodies = bodies

    async def CreateChatCompletion(
        self, request: httpbody_pb2.HttpBody, context: Context
    ) -> AsyncIterator[httpbody_pb2.HttpBody]:
        """POST a chat completion, whole or streamed as the body says."""
        read = await self._bodies.request(read_chat, request)
        answer = await self._services.chat.answer(read)
        async with contextlib.aclosing(
            answer_bodies(answer, read, CHAT, context, self._bodies.workers)
        ) as bodies:
            async for body in bodies:
                yield body

    async def CreateCompletion(
        self, request: httpbody_pb2.HttpBody, context: Context
    ) -> AsyncIterator[httpbody_pb2.HttpBody]:
        """POST a text completion, whole or streamed as the body says."""
        read = await self._bodies.request(read_text, request)
        answer = await self._services.texts.answer(read)
        async with contextlib.aclosing(
            answer_bodies(answer, read, TEXT, context, self._bodies.workers)
        ) as bodies:
            async for body in bodies:
                yield body

    async def Tokenize(
        self, request: httpbody_pb2.HttpBody, context: Context
    ) -> AsyncIterator[httpbody_pb2.HttpBody]:
        """POST texts or a conversation, get their tokens."""
        for body in await tokenize(self._services.tokenization, request, context, self._bodies):
            yield body

    async def Detokenize(
        self, request: httpbody_pb2.HttpBody, context: Context
    ) -> AsyncIterator[httpbody_pb2.HttpBody]:
        """POST tokens, get their text."""
        for body in await detokenize(self._services.tokenization, request, context, self._bodies):
            yield body

    async def ListModels(
        self,
        request: rest_service_pb2.RestServiceListModelsRequest,
        context: Context,
    ) -> httpbody_pb2.HttpBody:
        """The models, or those of a type and a provider."""
        models: list[JsonValue] = [
            wire.model(status)
            for status in self._services.models.statuses()
            if status.matches(request.type, request.provider)
        ]
        return json_body({"object": "list", "data": models})

    async def GetModel(
        self,
        request: rest_service_pb2.RestServiceGetModelRequest,
        context: Context,
    ) -> httpbody_pb2.HttpBody:
        """One model."""
        return json_body(wire.model(self._services.models.get(request.id).status))

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
        if unready := self._services.models.unready():
            raise UnavailableError(f"Not ready: {unready}.", retry_after=1)
        return json_body({"status": "ok"})

    async def GetVersion(
        self,
        request: rest_service_pb2.RestServiceGetVersionRequest,
        context: Context,
    ) -> httpbody_pb2.HttpBody:
        """Which versions run."""
        versions = self._services.versions
        return json_body(
            {
                "version": versions.ovchat,
                "openvino": versions.openvino,
                "openvino_genai": versions.openvino_genai,
            }
        )


def rest_error(error: ApiError) -> str:
    """The body of an error, as text that a header can carry."""
    return ascii_json(wire.error(error))
