"""A provider over gRPC that misbehaves: how, is the model's name."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc.aio

from ovchat.v1 import (
    chat_pb2,
    chat_service_pb2_grpc,
    message_pb2,
    model_service_pb2,
    model_service_pb2_grpc,
)
from ovchat_server.domain.errors import (
    ApiError,
    AuthenticationError,
    OverloadedError,
    UnavailableError,
)
from ovchat_server.rpc.errors import status_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.certificates import Authority

KEY = "sk-the-operators-own"
ERRORS: dict[str, ApiError] = {
    "full": OverloadedError("slow down", retry_after=7),
    "key": AuthenticationError(f"wrong key {KEY}"),
    "fails": UnavailableError("the engine died"),
}


@dataclass
class BadOvchat(
    chat_service_pb2_grpc.ChatServiceServicer, model_service_pb2_grpc.ModelServiceServicer
):
    """Where it listens, and what it saw."""

    port: int = 0
    tls_port: int = 0
    metadata: list[dict[str, Any]] = field(default_factory=list)
    listed: list[model_service_pb2.ListModelsRequest] = field(default_factory=list)
    # Set when it was asked, and when who asked what is never answered has gone.
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def CreateChatCompletion(self, request: Any, context: Any) -> Any:  # noqa: N802
        """All is well, if nothing else is asked for."""
        await self._behave(request, context)
        message = message_pb2.Message(content=[message_pb2.ContentPart(text="all is well")])
        reason = chat_pb2.FINISH_REASON_STOP
        choice = chat_pb2.Choice(index=0, message=message, finish_reason=reason)
        return chat_pb2.ChatCompletion(choices=[choice])

    async def StreamChatCompletion(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[Any]:
        """A beginning."""
        choice = chat_pb2.ChunkChoice(index=0, delta=chat_pb2.Delta(content="a"))
        yield chat_pb2.ChatCompletionChunk(choices=[choice])
        await self._behave(request, context)

    async def ListModels(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802
        """A model."""
        self.listed.append(request)
        models = [model_service_pb2.Model(id="good")]
        return model_service_pb2.ListModelsResponse(models=models)

    async def _behave(self, request: Any, context: Any) -> None:
        self.metadata.append(dict(context.invocation_metadata()))
        self.asked.set()
        if request.model == "hangs":
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        if error := ERRORS.get(request.model):
            details = ("grpc-status-details-bin", status_of(error).SerializeToString())
            await context.abort(grpc.StatusCode[error.status], error.message, (details,))


@contextlib.asynccontextmanager
async def bad_ovchat(authority: Authority) -> AsyncIterator[BadOvchat]:
    """Serve it, with TLS as `localhost` and without."""
    server, provider = grpc.aio.server(), BadOvchat()
    chat_service_pb2_grpc.add_ChatServiceServicer_to_server(provider, server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(provider, server)
    pem = authority.server_file("localhost").read_bytes()
    provider.port = server.add_insecure_port("127.0.0.1:0")
    tls = grpc.ssl_server_credentials([(pem, pem)])
    provider.tls_port = server.add_secure_port("localhost:0", tls)
    await server.start()
    try:
        yield provider
    finally:
        await server.stop(None)
