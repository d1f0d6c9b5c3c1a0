"""The typed services."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from ovchat.v1 import (
    chat_service_pb2_grpc,
    completion_service_pb2_grpc,
    model_service_pb2,
    model_service_pb2_grpc,
    server_service_pb2,
    server_service_pb2_grpc,
    tokenizer_service_pb2,
    tokenizer_service_pb2_grpc,
)
from ovchat_server.domain.chat import ChatRequest
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.text import TextRequest
from ovchat_server.domain.tokenization_request import read_detokenize_request
from ovchat_server.header_text import UNENFORCED, path_list
from ovchat_server.rpc import response
from ovchat_server.rpc.request import chat_request, contract_paths, text_request, tokenize_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from google.protobuf.message import Message

    from ovchat.v1 import chat_pb2, completion_pb2
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.tokenization import DetokenizeRequest
    from ovchat_server.rpc.middleware import Context
    from ovchat_server.serving.answer import Answer
    from ovchat_server.serving.codec_threads import CodecThreads
    from ovchat_server.serving.models import ModelRegistry
    from ovchat_server.serving.services import Services
    from ovchat_server.serving.versions import Versions

Request = TypeVar("Request", ChatRequest, TextRequest)


@dataclass(frozen=True, slots=True)
class _Generation(Generic[Request]):
    """Reads a request for generated tokens and starts to answer it."""

    read: Callable[..., Request]
    answer: Callable[[Request], Awaitable[Answer]]
    threads: CodecThreads
    limits: Limits

    async def start(
        self, message: Message, context: Context, *, stream: bool
    ) -> tuple[Answer, StreamOptions]:
        read = partial(self.read, message, stream=stream, limits=self.limits)
        request = await self.threads.read(read, message.ByteSize())
        with contract_paths(message):
            answer = await self.answer(request)
        if answer.unenforced:
            # Not initial: that would keep Envoy from giving an error its HTTP status.
            hint = (UNENFORCED, path_list(answer.unenforced))
            context.set_trailing_metadata((*context.trailing_metadata(), hint))
        return answer, request.stream or StreamOptions()


class ChatServicer(chat_service_pb2_grpc.ChatServiceServicer):
    """ovchat.v1.ChatService."""

    def __init__(self, services: Services, limits: Limits) -> None:
        """Answer requests that keep to `limits`."""
        self._chats = _Generation(chat_request, services.chat.answer, services.threads, limits)

    async def CreateChatCompletion(
        self, request: chat_pb2.CreateChatCompletionRequest, context: Context
    ) -> chat_pb2.ChatCompletion:
        """Send the whole answer at once."""
        answer, _ = await self._chats.start(request, context, stream=False)
        return await self._chats.threads.write(response.chat_completion, await answer.whole())

    async def StreamChatCompletion(
        self, request: chat_pb2.CreateChatCompletionRequest, context: Context
    ) -> AsyncIterator[chat_pb2.ChatCompletionChunk]:
        """Send the answer as it is generated."""
        answer, options = await self._chats.start(request, context, stream=True)
        async with contextlib.aclosing(answer.stream(options)) as chunks:
            async for chunk in chunks:
                yield await self._chats.threads.write(response.chat_chunk, chunk)


class CompletionServicer(completion_service_pb2_grpc.CompletionServiceServicer):
    """ovchat.v1.CompletionService."""

    def __init__(self, services: Services, limits: Limits) -> None:
        """Answer requests that keep to `limits`."""
        self._texts = _Generation(text_request, services.texts.answer, services.threads, limits)

    async def CreateCompletion(
        self, request: completion_pb2.CreateCompletionRequest, context: Context
    ) -> completion_pb2.Completion:
        """Send the whole answer at once."""
        answer, _ = await self._texts.start(request, context, stream=False)
        return await self._texts.threads.write(response.completion, await answer.whole())

    async def StreamCompletion(
        self, request: completion_pb2.CreateCompletionRequest, context: Context
    ) -> AsyncIterator[completion_pb2.CompletionChunk]:
        """Send the answer as it is generated."""
        answer, options = await self._texts.start(request, context, stream=True)
        async with contextlib.aclosing(answer.stream(options)) as chunks:
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
            response.model(status)
            for status in self._models.statuses()
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
        status = self._models.get(request.id, "id").status
        return model_service_pb2.GetModelResponse(model=response.model(status))


class ServerServicer(server_service_pb2_grpc.ServerServiceServicer):
    """ovchat.v1.ServerService."""

    def __init__(self, versions: Versions) -> None:
        """Report `versions`."""
        self._versions = versions

    async def GetVersion(
        self, request: server_service_pb2.GetVersionRequest, context: Context
    ) -> server_service_pb2.GetVersionResponse:
        """Send which versions run."""
        return server_service_pb2.GetVersionResponse(
            version=self._versions.ovchat,
            openvino=self._versions.openvino,
            openvino_genai=self._versions.openvino_genai,
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
