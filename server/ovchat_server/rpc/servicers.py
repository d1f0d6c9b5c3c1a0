"""The typed services."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ovchat.v1 import (
    chat_service_pb2_grpc,
    completion_service_pb2_grpc,
    model_service_pb2,
    model_service_pb2_grpc,
)
from ovchat_server.api.generation import StreamOptions
from ovchat_server.rpc import response
from ovchat_server.rpc.request import chat_request, contract_paths, text_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

    from ovchat.v1 import chat_pb2, completion_pb2
    from ovchat_server.api.chat import ChatRequest
    from ovchat_server.api.limits import Limits
    from ovchat_server.api.text import TextRequest
    from ovchat_server.serving.chat import ChatCompletions
    from ovchat_server.serving.codec_workers import CodecWorkers
    from ovchat_server.serving.models import ModelRegistry
    from ovchat_server.serving.text import TextCompletions

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class ChatServicer(chat_service_pb2_grpc.ChatServiceServicer):
    """ovchat.v1.ChatService."""

    def __init__(self, chat: ChatCompletions, workers: CodecWorkers, limits: Limits) -> None:
        """Answer with `chat` what keeps to `limits`."""
        self._chat = chat
        self._workers = workers
        self._limits = limits

    async def CreateChatCompletion(
        self, request: chat_pb2.CreateChatCompletionRequest, context: Context
    ) -> chat_pb2.ChatCompletion:
        """The whole answer at once."""
        read = await self._read(request, stream=False)
        with contract_paths(request.DESCRIPTOR):
            answer = await self._chat.answer(read)
        return await self._workers.write(response.chat_completion, await answer.whole())

    async def StreamChatCompletion(
        self, request: chat_pb2.CreateChatCompletionRequest, context: Context
    ) -> AsyncIterator[chat_pb2.ChatCompletionChunk]:
        """The answer as it is generated."""
        read = await self._read(request, stream=True)
        with contract_paths(request.DESCRIPTOR):
            answer = await self._chat.answer(read)
        async with contextlib.aclosing(answer.stream(read.stream or StreamOptions())) as chunks:
            async for chunk in chunks:
                yield await self._workers.write(response.chat_chunk, chunk)

    async def _read(
        self, request: chat_pb2.CreateChatCompletionRequest, *, stream: bool
    ) -> ChatRequest:
        read = partial(chat_request, request, stream=stream, limits=self._limits)
        return await self._workers.read(read, request.ByteSize())


class CompletionServicer(completion_service_pb2_grpc.CompletionServiceServicer):
    """ovchat.v1.CompletionService."""

    def __init__(self, texts: TextCompletions, workers: CodecWorkers, limits: Limits) -> None:
        """Answer with `texts` what keeps to `limits`."""
        self._texts = texts
        self._workers = workers
        self._limits = limits

    async def CreateCompletion(
        self, request: completion_pb2.CreateCompletionRequest, context: Context
    ) -> completion_pb2.Completion:
        """The whole answer at once."""
        read = await self._read(request, stream=False)
        with contract_paths(request.DESCRIPTOR):
            answer = await self._texts.answer(read)
        return await self._workers.write(response.completion, await answer.whole())

    async def StreamCompletion(
        self, request: completion_pb2.CreateCompletionRequest, context: Context
    ) -> AsyncIterator[completion_pb2.CompletionChunk]:
        """The answer as it is generated."""
        read = await self._read(request, stream=True)
        with contract_paths(request.DESCRIPTOR):
            answer = await self._texts.answer(read)
        async with contextlib.aclosing(answer.stream(read.stream or StreamOptions())) as chunks:
            async for chunk in chunks:
                yield await self._workers.write(response.completion_chunk, chunk)

    async def _read(
        self, request: completion_pb2.CreateCompletionRequest, *, stream: bool
    ) -> TextRequest:
        read = partial(text_request, request, stream=stream, limits=self._limits)
        return await self._workers.read(read, request.ByteSize())


class ModelServicer(model_service_pb2_grpc.ModelServiceServicer):
    """ovchat.v1.ModelService."""

    def __init__(self, models: ModelRegistry) -> None:
        """Tell of `models`."""
        self._models = models

    async def ListModels(
        self, request: model_service_pb2.ListModelsRequest, context: Context
    ) -> model_service_pb2.ListModelsResponse:
        """The models, or those of a type and a provider."""
        models = [
            response.model(status)
            for status in self._models.statuses()
            if status.matches(request.type, request.provider)
        ]
        return model_service_pb2.ListModelsResponse(models=models)

    async def GetModel(
        self, request: model_service_pb2.GetModelRequest, context: Context
    ) -> model_service_pb2.GetModelResponse:
        """One model."""
        status = self._models.get(request.id).status
        return model_service_pb2.GetModelResponse(model=response.model(status))
