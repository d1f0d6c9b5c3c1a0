"""Calls of another ovchat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc.aio

from ovchat.v1 import (
    chat_service_pb2_grpc,
    completion_service_pb2_grpc,
    model_service_pb2,
    model_service_pb2_grpc,
)
from ovchat_server.domain.chat import ChatRequest
from ovchat_server.domain.models import MODEL_TYPE, PROVIDER
from ovchat_server.providers.body import Body
from ovchat_server.providers.ovchat import errors
from ovchat_server.providers.ovchat.answer import MessageReader
from ovchat_server.providers.ovchat.channel import OvchatChannel
from ovchat_server.providers.ovchat.chat_message import chat_message
from ovchat_server.providers.ovchat.exchange import OvchatExchange
from ovchat_server.providers.ovchat.text_message import text_message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.domain.text import TextRequest
    from ovchat_server.providers.ovchat.exchange import Call


class OvchatClient:
    """Calls another ovchat by the typed contract, through Envoy; see ProviderClient."""

    def __init__(self, name: str, address: str, key: str) -> None:
        """Call nothing yet; see OvchatChannel."""
        self._channel = OvchatChannel(name, address, key)

    @property
    def name(self) -> str:
        """See ProviderClient."""
        return self._channel.provider

    def exchange(self, request: ChatRequest | TextRequest, model: str) -> OvchatExchange:
        """See ProviderClient."""
        start = self._start(request, Body(self.name, model, vllm_parameters=True))
        return OvchatExchange(self._channel, start, MessageReader(request))

    async def model_ids(self) -> Sequence[str]:
        """See ProviderClient. Those that the other ovchat has from providers are not its own."""
        channel = self._channel
        models = model_service_pb2_grpc.ModelServiceStub(channel.opened())
        request = model_service_pb2.ListModelsRequest(type=MODEL_TYPE, provider=PROVIDER)
        try:
            listed = await models.ListModels(request, metadata=channel.metadata)
        except grpc.aio.AioRpcError as error:
            raise errors.of_call(self.name, error, channel.key, begun=False) from error
        return [model.id for model in listed.models]

    async def close(self) -> None:
        """See ProviderClient."""
        await self._channel.close()

    def _start(self, request: ChatRequest | TextRequest, body: Body) -> Callable[[], Call]:
        """Return what makes the call for a request."""
        channel, streams = self._channel, request.stream is not None
        if isinstance(request, ChatRequest):
            chat = chat_message(body, request)

            def ask_chat() -> Call:
                stub = chat_service_pb2_grpc.ChatServiceStub(channel.opened())
                ask = stub.StreamChatCompletion if streams else stub.CreateChatCompletion
                return ask(chat, metadata=channel.metadata)

            return ask_chat
        text = text_message(body, request)

        def ask_text() -> Call:
            stub = completion_service_pb2_grpc.CompletionServiceStub(channel.opened())
            ask = stub.StreamCompletion if streams else stub.CreateCompletion
            return ask(text, metadata=channel.metadata)

        return ask_text
