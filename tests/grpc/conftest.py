from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ovchat.v1 import (
    chat_service_pb2_grpc,
    completion_service_pb2_grpc,
    model_service_pb2,
    model_service_pb2_grpc,
    provider_service_pb2_grpc,
    response_service_pb2_grpc,
    server_service_pb2_grpc,
    tokenizer_service_pb2_grpc,
)
from ovchat_server.app import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.settings import ModelSettings, Settings


@dataclass
class Client:
    """Stubs of one server."""

    server: Server
    channel: grpc.aio.Channel

    def __post_init__(self) -> None:
        self.chat = chat_service_pb2_grpc.ChatServiceStub(self.channel)
        self.texts = completion_service_pb2_grpc.CompletionServiceStub(self.channel)
        self.responses = response_service_pb2_grpc.ResponseServiceStub(self.channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)
        self.providers = provider_service_pb2_grpc.ProviderServiceStub(self.channel)
        self.tokenizer = tokenizer_service_pb2_grpc.TokenizerServiceStub(self.channel)
        self.server_service = server_service_pb2_grpc.ServerServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    async def wait_for_health(self, status: str, service: str = "") -> None:
        """Until the server says so; a test's own timeout is the limit."""
        request = health_pb2.HealthCheckRequest(service=service)
        watch = self.health.Watch(request)
        async for update in watch:
            if update.status == health_pb2.HealthCheckResponse.ServingStatus.Value(status):
                watch.cancel()
                return

    async def model(self, name: str) -> model_service_pb2.Model:
        response = await self.models.GetModel(model_service_pb2.GetModelRequest(id=name))
        return response.model


@contextlib.asynccontextmanager
async def running(server: Server) -> AsyncIterator[Client]:
    """Run a server in this process, until it serves, and its engines in theirs."""
    async with server.running(), grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        client = Client(server, channel)
        await client.wait_for_health("SERVING")
        yield client


@pytest.fixture(scope="session")
async def client(
    make_settings: Callable[..., Settings], demo: ModelSettings, successor: ModelSettings
) -> AsyncIterator[Client]:
    """A whole server."""
    async with running(Server(make_settings(demo, successor))) as client:
        yield client
