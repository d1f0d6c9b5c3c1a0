"""The channel to another ovchat: gRPC to Envoy's egress listener, which reaches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import grpc.aio

from ovchat.v1 import (
    chat_service_pb2_grpc,
    completion_service_pb2_grpc,
    model_service_pb2_grpc,
)
from ovchat_server.providers.egress import MAX_ANSWER_BYTES, is_socket
from ovchat_server.providers.errors import of_stopping
from ovchat_server.serving.record import current_record
from ovchat_server.settings import socket_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.providers.ovchat.exchange import OvchatExchange

# `ovchat up` starts Envoy again soon.
MAX_RECONNECT_MS = 1000
# Of a listener on another machine, which may vanish without a word.
PING_MS = 60_000


@dataclass(frozen=True, slots=True)
class Stubs:
    """A channel, and the services that are called on it."""

    channel: grpc.aio.Channel
    chats: chat_service_pb2_grpc.ChatServiceAsyncStub
    texts: completion_service_pb2_grpc.CompletionServiceAsyncStub
    models: model_service_pb2_grpc.ModelServiceAsyncStub

    @classmethod
    def of(cls, channel: grpc.aio.Channel) -> Self:
        """Return the stubs of a channel."""
        return cls(
            channel,
            chat_service_pb2_grpc.ChatServiceStub(channel),
            completion_service_pb2_grpc.CompletionServiceStub(channel),
            model_service_pb2_grpc.ModelServiceStub(channel),
        )


class OvchatChannel:
    """The channel to one provider, which is a host of its name at the listener.

    Attributes:
        provider: The provider's name.
        key: The API key; "" for none.
        exchanges: Those under way.
    """

    def __init__(self, provider: str, address: str, key: str) -> None:
        """Connect to nothing yet.

        Args:
            provider: As above.
            address: Where the listener is; see Egress.
            key: As above.
        """
        self.provider = provider
        self.key = key
        self.exchanges: set[OvchatExchange] = set()
        self._target = socket_target(address) if is_socket(address) else address
        self._stubs: Stubs | None = None

    @property
    def metadata(self) -> Sequence[tuple[str, str]]:
        """Return the metadata of a call."""
        traced = current_record().trace_headers.items()
        return [("authorization", f"Bearer {self.key}"), *traced] if self.key else [*traced]

    @property
    def stubs(self) -> Stubs:
        """Return the services; the channel has to be made in the event loop."""
        if self._stubs is None:
            options: list[tuple[str, str | int]] = [
                ("grpc.default_authority", self.provider),
                ("grpc.primary_user_agent", "ovchat"),
                ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
                ("grpc.initial_reconnect_backoff_ms", MAX_RECONNECT_MS // 10),
                ("grpc.max_reconnect_backoff_ms", MAX_RECONNECT_MS),
                ("grpc.keepalive_time_ms", PING_MS),
            ]
            self._stubs = Stubs.of(grpc.aio.insecure_channel(self._target, options))
        return self._stubs

    async def close(self) -> None:
        """Close all connections. What is under way fails."""
        for exchange in self.exchanges:
            exchange.fail(of_stopping())
        if self._stubs is not None:
            await self._stubs.channel.close()
            self._stubs = None
