"""The typed services."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING

from ovchat.v1 import (
    chat_service_pb2_grpc,
    completion_service_pb2_grpc,
    model_service_pb2,
    model_service_pb2_grpc,
    provider_service_pb2,
    provider_service_pb2_grpc,
    server_service_pb2,
    server_service_pb2_grpc,
    tokenizer_service_pb2,
    tokenizer_service_pb2_grpc,
)
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.tokenization_request import read_detokenize_request
from ovchat_server.rpc import metrics_messages, model_messages, response
from ovchat_server.rpc.generation import Generation
from ovchat_server.rpc.request import chat_request, text_request, tokenize_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat.v1 import chat_pb2, completion_pb2
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.tokenization import DetokenizeRequest
    from ovchat_server.rpc.middleware import Context
    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.serving.replica import Replica
    from ovchat_server.serving.services import Services
    from ovchat_server.serving.versions import Versions


class ChatServicer(chat_service_pb2_grpc.ChatServiceServicer):
    """ovchat.v1.ChatService."""

    def __init__(self, services: Services, limits: Limits) -> None:
        """Answer requests that keep to `limits`."""
        self._chats = Generation(
            chat_request, services.completions.answer, services.threads, limits
        )

    async def CreateChatCompletion(
        self, request: chat_pb2.CreateChatCompletionRequest, context: Context
    ) -> chat_pb2.ChatCompletion:
        """Send the whole answer at once."""
        async with self._chats.started(request, context, stream=False) as (_, answer):
            return await self._chats.threads.write(response.chat_completion, await answer.whole())

    async def StreamChatCompletion(
        self, request: chat_pb2.CreateChatCompletionRequest, context: Context
    ) -> AsyncIterator[chat_pb2.ChatCompletionChunk]:
        """Send the answer as it is generated."""
        async with (
            self._chats.started(request, context, stream=True) as (read, answer),
            contextlib.aclosing(answer.stream(read.stream or StreamOptions())) as chunks,
        ):
            async for chunk in chunks:
                yield await self._chats.threads.write(response.chat_chunk, chunk)


class CompletionServicer(completion_service_pb2_grpc.CompletionServiceServicer):
    """ovchat.v1.CompletionService."""

    def __init__(self, services: Services, limits: Limits) -> None:
        """Answer requests that keep to `limits`."""
        self._texts = Generation(
            text_request, services.completions.answer, services.threads, limits
        )

    async def CreateCompletion(
        self, request: completion_pb2.CreateCompletionRequest, context: Context
    ) -> completion_pb2.Completion:
        """Send the whole answer at once."""
        async with self._texts.started(request, context, stream=False) as (_, answer):
            return await self._texts.threads.write(response.completion, await answer.whole())

    async def StreamCompletion(
        self, request: completion_pb2.CreateCompletionRequest, context: Context
    ) -> AsyncIterator[completion_pb2.CompletionChunk]:
        """Send the answer as it is generated."""
        async with (
            self._texts.started(request, context, stream=True) as (read, answer),
            contextlib.aclosing(answer.stream(read.stream or StreamOptions())) as chunks,
        ):
            async for chunk in chunks:
                yield await self._texts.threads.write(response.completion_chunk, chunk)


class ModelServicer(model_service_pb2_grpc.ModelServiceServicer):
    """ovchat.v1.ModelService."""

    def __init__(self, models: ModelRegistry) -> None:
        """Report on `models`."""
        self._models = models

    async def ListModels(
        self, request: model_service_pb2.ListModelsRequest, context: Context
    ) -> model_service_pb2.ListModelsResponse:
        """Send the models, or those of a type and a provider."""
        models = [
            model_messages.model(status)
            for status in self._models.listed()
            if status.matches(request.type, request.provider)
        ]
        return model_service_pb2.ListModelsResponse(models=models)

    async def GetModel(
        self, request: model_service_pb2.GetModelRequest, context: Context
    ) -> model_service_pb2.GetModelResponse:
        """Send one model."""
        if not request.id:
            complaint = "is required: the id of a model, as listed by ListModels."
            raise InvalidRequestError.about("id", complaint, "missing_required_parameter")
        status = self._models.status(request.id, "id")
        return model_service_pb2.GetModelResponse(model=model_messages.model(status))


class ProviderServicer(provider_service_pb2_grpc.ProviderServiceServicer):
    """ovchat.v1.ProviderService."""

    def __init__(self, models: ModelRegistry) -> None:
        """Report on the providers of `models`."""
        self._models = models

    async def ListProviders(
        self, request: provider_service_pb2.ListProvidersRequest, context: Context
    ) -> provider_service_pb2.ListProvidersResponse:
        """Send the providers, this server among them."""
        return provider_service_pb2.ListProvidersResponse(
            providers=map(model_messages.provider, self._models.providers())
        )


class ServerServicer(server_service_pb2_grpc.ServerServiceServicer):
    """ovchat.v1.ServerService."""

    def __init__(self, versions: Versions, replica: Replica) -> None:
        """Report `versions`, and the numbers of this server."""
        self._versions = versions
        self._replica = replica

    async def GetVersion(
        self, request: server_service_pb2.GetVersionRequest, context: Context
    ) -> server_service_pb2.GetVersionResponse:
        """Send which versions run."""
        return server_service_pb2.GetVersionResponse(
            version=self._versions.ovchat,
            openvino=self._versions.openvino,
            openvino_genai=self._versions.openvino_genai,
        )

    async def GetMetrics(
        self, request: server_service_pb2.GetMetricsRequest, context: Context
    ) -> server_service_pb2.GetMetricsResponse:
        """Send the numbers of this server."""
        replica = self._replica
        # Not in the event loop, whose streams would wait for it.
        families = await asyncio.to_thread(
            lambda: [*map(metrics_messages.family, replica.collect())]
        )
        return server_service_pb2.GetMetricsResponse(
            families=families,
            server=replica.number,
            replicas=replica.count,
            version=self._versions.ovchat,
            start_time=replica.started,
            uptime=replica.uptime,
        )


class TokenizerServicer(tokenizer_service_pb2_grpc.TokenizerServiceServicer):
    """ovchat.v1.TokenizerService."""

    def __init__(self, services: Services, limits: Limits) -> None:
        """Answer requests that keep to `limits`."""
        self._threads = services.threads
        self._tokenization = services.tokenization
        self._limits = limits

    async def Tokenize(
        self, request: tokenizer_service_pb2.TokenizeRequest, context: Context
    ) -> tokenizer_service_pb2.TokenizeResponse:
        """Send the tokens of texts or of a conversation."""
        parse = partial(tokenize_request, request, self._limits)
        read = await self._threads.read(parse, request.ByteSize())
        tokenized = await self._tokenization.tokenize(read)
        return tokenizer_service_pb2.TokenizeResponse(
            sequences=[
                tokenizer_service_pb2.TokenSequence(
                    tokens=sequence.tokens, token_strs=sequence.strings
                )
                for sequence in tokenized.sequences
            ],
            count=tokenized.count,
            context_length=tokenized.context_length,
        )

    async def Detokenize(
        self, request: tokenizer_service_pb2.DetokenizeRequest, context: Context
    ) -> tokenizer_service_pb2.DetokenizeResponse:
        """Send the text of tokens."""
        read = await self._threads.read(partial(_detokenize_request, request), request.ByteSize())
        text = await self._tokenization.detokenize(read)
        return tokenizer_service_pb2.DetokenizeResponse(prompt=text)


def _detokenize_request(request: tokenizer_service_pb2.DetokenizeRequest) -> DetokenizeRequest:
    # No tokens are no field that is not set: their text is "".
    return read_detokenize_request({"model": request.model or None, "tokens": list(request.tokens)})
