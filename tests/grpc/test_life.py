"""How a server starts, and survives a dead engine; how it ends: test_drain.py."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2

from ovchat.v1 import model_service_pb2, tokenizer_service_pb2
from ovchat_server.app import Server
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.client.connection import EngineConnection
from ovchat_server.serving.model_folder import ModelFilesError
from ovchat_server.settings import ModelSettings
from ovchat_server.start_error import StartError
from tests.grpc.conftest import Client
from tests.grpc.engines import engine_of, until
from tests.grpc.requests import ask, text_of
from tests.grpc.requests import successor as ask_successor
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from ovchat_server.settings import Settings


@contextlib.asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Client]:
    server = Server(settings)
    async with server.running(), grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield Client(server, channel)


async def test_says_that_it_is_not_ready_until_the_model_is_loaded(
    make_settings: Callable[..., Settings],
    successor: ModelSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load, ready = asyncio.Event(), EngineConnection.ready

    async def ready_when_told(self: EngineConnection[Any, Any, Any]) -> Any:
        await load.wait()
        return await ready(self)

    monkeypatch.setattr(EngineConnection, "ready", ready_when_told)
    async with serving(make_settings(successor)) as client:
        health = await client.health.Check(health_pb2.HealthCheckRequest())
        model = await client.model("successor")
        assert health.status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert model.state == model_service_pb2.MODEL_STATE_LOADING
        for name in ("TokenizerService", "ServerService"):
            check = health_pb2.HealthCheckRequest(service=f"ovchat.v1.{name}")
            of_service = await client.health.Check(check)
            assert of_service.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.chat.CreateChatCompletion(ask_successor("a", 5))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        # What needs no engine answers all the while.
        request = tokenizer_service_pb2.TokenizeRequest(model="successor", prompt="ab")
        assert (await client.tokenizer.Tokenize(request)).context_length == 4096

        load.set()
        await client.wait_for_health("SERVING")

        assert text_of(await client.chat.CreateChatCompletion(ask_successor("a", 5))) == "bcdef"


async def test_a_dead_engine_is_not_serving_and_what_it_said_is_gone_on_with(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    async with serving(make_settings(successor)) as client:
        await client.wait_for_health("SERVING")
        running = aiter(client.chat.StreamChatCompletion(ask_successor("a", 500)))
        chunks = [await anext(running)]
        watch = client.health.Watch(
            health_pb2.HealthCheckRequest(service="ovchat.v1.ChatService/successor")
        )
        states = [(await watch.read()).status]

        engine = client.server._engines["successor"].supervisor._connection
        assert engine is not None
        engine.kill()

        states += [(await watch.read()).status, (await watch.read()).status]
        watch.cancel()
        chunks += [chunk async for chunk in running]
    status = health_pb2.HealthCheckResponse
    assert states == [status.SERVING, status.NOT_SERVING, status.SERVING]
    text = "".join(choice.delta.content for chunk in chunks for choice in chunk.choices)
    assert text == successor_text("a", 500)


async def test_a_port_that_is_taken_is_named(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    async with serving(make_settings(successor)) as client:
        taken = make_settings(successor)
        object.__setattr__(taken, "grpc_port", client.server.port)
        with pytest.raises(StartError, match=f"port {client.server.port}.*--grpc-port"):
            async with serving(taken):
                pass


async def test_a_socket_that_is_taken_is_named(
    make_settings: Callable[..., Settings], successor: ModelSettings, tmp_path: Path
) -> None:
    settings = make_settings(successor, grpc_socket=f"{tmp_path}/s")
    async with Server(settings).running():
        with pytest.raises(StartError, match=r"socket .*/s is in use"):
            async with Server(settings).running():
                pass


async def test_a_model_that_cannot_be_loaded_says_why_and_the_others_are_served(
    make_settings: Callable[..., Settings], successor: ModelSettings, tmp_path: Path
) -> None:
    shutil.copytree(successor.path, tmp_path / "broken")
    (tmp_path / "broken/openvino_model.bin").write_bytes(b"too short")
    broken = ModelSettings(name="broken", path=tmp_path / "broken")

    async with serving(make_settings(broken, successor)) as client:
        await client.wait_for_health("SERVING", "ovchat.v1.ChatService/successor")
        answer = await client.chat.CreateChatCompletion(ask_successor("a", 5))
        assert text_of(answer) == "bcdef"
        await until(lambda: engine_of(client, "broken").status.state is ModelState.FAILED)
        model = await client.model("broken")
        assert model.state == model_service_pb2.MODEL_STATE_FAILED
        assert "export or copy" in model.state_reason
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.chat.CreateChatCompletion(ask("a", "broken"))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert model.state_reason in str(caught.value.details())
        for service in ("", "ovchat.v1.ChatService/broken"):
            check = await client.health.Check(health_pb2.HealthCheckRequest(service=service))
            assert check.status == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_a_missing_model_is_named(
    make_settings: Callable[..., Settings], tmp_path: Path
) -> None:
    settings = make_settings(ModelSettings(name="gone", path=tmp_path / "gone"))

    with pytest.raises(ModelFilesError, match="gone"):
        Server(settings)


@pytest.mark.slow
@pytest.mark.parametrize("timeout", [2_147_483.0, 1e9, 1e307])
async def test_a_request_may_be_given_more_time_than_grpc_can_count(
    make_settings: Callable[..., Settings], successor: ModelSettings, timeout: float
) -> None:
    async with serving(make_settings(successor, request_timeout=timeout)) as client:
        await client.wait_for_health("SERVING")
        answer = await client.chat.CreateChatCompletion(ask_successor("a", 5))
        assert text_of(answer) == successor_text("a", 5)
