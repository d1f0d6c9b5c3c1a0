"""Calls of another ovchat."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import grpc.aio

from ovchat.v1 import model_service_pb2
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
    from collections.abc import Sequence

    from ovchat.v1 import chat_pb2, completion_pb2
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
        body = Body(self.name, model, vllm_parameters=True)
        if isinstance(request, ChatRequest):
            call = partial(self._call_chats, chat_message(body, request))
        else:
            call = partial(self._call_texts, text_message(body, request))
        start = partial(call, streams=request.stream is not None)
        return OvchatExchange(self._channel, start, MessageReader(request))

    async def model_ids(self) -> Sequence[str]:
        """See ProviderClient. Those that the other ovchat has from providers are not its own."""
        channel = self._channel
        request = model_service_pb2.ListModelsRequest(type=MODEL_TYPE, provider=PROVIDER)
        try:
            listed = await channel.stubs.models.ListModels(request, metadata=channel.metadata)
        except grpc.aio.AioRpcError as error:
            raise errors.of_call(self.name, error, channel.key, begun=False) from error
        return [model.id for model in listed.models]

    async def close(self) -> None:
        """See ProviderClient."""
        await self._channel.close()

    def _call_chats(self, message: chat_pb2.CreateChatCompletionRequest, *, streams: bool) -> Call:
        chats = self._channel.stubs.chats
        method = chats.StreamChatCompletion if streams else chats.CreateChatCompletion
        return method(message, metadata=self._channel.metadata)

    def _call_texts(
        self, message: completion_pb2.CreateCompletionRequest, *, streams: bool
    ) -> Call:
        texts = self._channel.stubs.texts
        method = texts.StreamCompletion if streams else texts.CreateCompletion
        return method(message, metadata=self._channel.metadata)
