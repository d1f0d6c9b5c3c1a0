"""A server that answers as the request tells it to."""

# ruff: noqa: ARG002, N802  servicers have gRPC's signatures and names

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
from google.api import httpbody_pb2
from google.protobuf import any_pb2
from google.rpc import status_pb2
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from ovchat.v1 import (
    chat_pb2,
    chat_service_pb2_grpc,
    model_service_pb2,
    model_service_pb2_grpc,
    rest_service_pb2_grpc,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MAX_BYTES = 8 << 20
ERROR = {
    "error": {
        "message": 'no "such"\nmodel: \u00e9\U0001f600',
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }
}
WITH_ERROR = (("x-ovchat-error", json.dumps(ERROR)),)


@dataclass
class Progress:
    """How far one call has come, and whether a stepwise one may go on."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Seen:
    """What reached the server."""

    metadata: list[dict[str, str]] = field(default_factory=list)
    bodies: list[httpbody_pb2.HttpBody] = field(default_factory=list)
    providers: list[str] = field(default_factory=list)
    remaining: list[float | None] = field(default_factory=list)
    # By request id: the calls of an earlier test may still be ending.
    calls: defaultdict[str, Progress] = field(default_factory=lambda: defaultdict(Progress))

    def note(self, context: Any) -> Progress:
        self.metadata.append({str(k): str(v) for k, v in context.invocation_metadata()})
        self.remaining.append(context.time_remaining())
        call = self.calls[self.last["x-request-id"]]
        call.reached.set()
        return call

    @property
    def last(self) -> dict[str, str]:
        return self.metadata[-1]


async def obey(script: dict[str, Any], context: Any) -> None:
    """Fail as `script` says: {"abort": "NOT_FOUND", "trailers": [[key, value]]}."""
    if "abort" in script:
        if script.get("initial"):
            await context.send_initial_metadata((("x-early", "1"),))
        trailers = [(key, value) for key, value in script.get("trailers", ())]
        if "rich" in script:
            trailers.append(("grpc-status-details-bin", rich_status(script["rich"])))
        code = grpc.StatusCode[script["abort"]]
        await context.abort(code, script.get("details", "details"), tuple(trailers))


def rich_status(type_url: str) -> bytes:
    """A google.rpc.Status with a detail of the given type."""
    detail = any_pb2.Any(type_url=type_url, value=b"")
    status = status_pb2.Status(code=5, message="rich", details=[detail])
    return bytes(status.SerializeToString())


class Rest(rest_service_pb2_grpc.RestServiceServicer):
    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.ready = True

    async def CreateChatCompletion(self, request: Any, context: Any) -> AsyncIterator[Any]:
        call = self.seen.note(context)
        self.seen.bodies.append(request)
        try:
            script = json.loads(request.data)
        except ValueError:
            script = {}
        await obey(script, context)
        if script.get("hang"):
            await asyncio.Event().wait()
        if not script.get("stream"):
            data = json.dumps({"bytes": len(request.data)}).encode()
            yield httpbody_pb2.HttpBody(content_type="application/json", data=data)
            return
        await context.send_initial_metadata((("x-ignored-parameters", "foo"),))
        try:
            for number in range(script.get("events", 3)):
                yield event(f"data: {number}\n\n")
                if script.get("stepwise"):
                    await call.go_on.wait()
                    call.go_on.clear()
            if "late_abort" in script:
                await context.abort(grpc.StatusCode.INTERNAL, "late", WITH_ERROR)
            yield event("data: [DONE]\n\n")
        # The latter where the cancellation met it sending an event.
        except (asyncio.CancelledError, GeneratorExit):
            call.cancelled.set()
            raise

    async def CreateMessage(self, request: Any, context: Any) -> AsyncIterator[Any]:
        async with contextlib.aclosing(self.CreateChatCompletion(request, context)) as parts:
            async for part in parts:
                yield part

    async def CreateProviderChatCompletion(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.seen.providers.append(request.prefix)
        async with contextlib.aclosing(self.CreateChatCompletion(request.body, context)) as parts:
            async for part in parts:
                yield part

    async def ListModels(self, request: Any, context: Any) -> httpbody_pb2.HttpBody:
        self.seen.note(context)
        return httpbody_pb2.HttpBody(content_type="application/json", data=b'{"data": []}')

    async def GetModel(self, request: Any, context: Any) -> httpbody_pb2.HttpBody:
        self.seen.note(context)
        if request.id == "missing":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no", WITH_ERROR)
        data = json.dumps({"id": request.id}).encode()
        return httpbody_pb2.HttpBody(content_type="application/json", data=data)

    async def GetLiveness(self, request: Any, context: Any) -> httpbody_pb2.HttpBody:
        return httpbody_pb2.HttpBody(content_type="application/json", data=b"{}")

    async def GetReadiness(self, request: Any, context: Any) -> httpbody_pb2.HttpBody:
        if not self.ready:
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, "loading", (*WITH_ERROR, ("retry-after", "7"))
            )
        return httpbody_pb2.HttpBody(content_type="application/json", data=b"{}")


def event(text: str) -> httpbody_pb2.HttpBody:
    return httpbody_pb2.HttpBody(content_type="text/event-stream", data=text.encode())


class Chat(chat_service_pb2_grpc.ChatServiceServicer):
    """The typed RPCs; the script is the field `user`."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    async def CreateChatCompletion(self, request: Any, context: Any) -> chat_pb2.ChatCompletion:
        self.seen.note(context)
        await obey(json.loads(request.user or "{}"), context)
        return chat_pb2.ChatCompletion(id="x", system_fingerprint=request.model)

    async def StreamChatCompletion(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.seen.note(context)
        script = json.loads(request.user or "{}")
        await obey(script, context)
        for number in range(script.get("events", 2)):
            yield chat_pb2.ChatCompletionChunk(id=str(number), system_fingerprint="f")
        context.set_trailing_metadata((("x-trailer", "kept"),))


class Models(model_service_pb2_grpc.ModelServiceServicer):
    async def ListModels(self, request: Any, context: Any) -> model_service_pb2.ListModelsResponse:
        return model_service_pb2.ListModelsResponse()

    async def GetModel(self, request: Any, context: Any) -> model_service_pb2.GetModelResponse:
        model = model_service_pb2.Model(
            id=request.id, load=model_service_pb2.EngineLoad(generated_tokens=5)
        )
        return model_service_pb2.GetModelResponse(model=model)


def scripted_server(rest: Rest) -> grpc.aio.Server:
    """The server, listening nowhere yet."""
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", 2 * MAX_BYTES),
            # Above Envoy's own limit, which is to be the one that is met.
            ("grpc.max_metadata_size", 128 << 10),
        ]
    )
    rest_service_pb2_grpc.add_RestServiceServicer_to_server(rest, server)
    chat_service_pb2_grpc.add_ChatServiceServicer_to_server(Chat(rest.seen), server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(Models(), server)
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    reflection.enable_server_reflection(("ovchat.v1.ChatService",), server)
    return server
