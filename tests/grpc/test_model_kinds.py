"""Models of several kinds in one server, which come and go while it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2

from ovchat.v1 import model_service_pb2
from ovchat_server.app import Server
from ovchat_server.domain.errors import ModelNotFoundError
from ovchat_server.kinds.base import EngineHost
from ovchat_server.settings import ModelSettings
from tests.echo import ECHO_FILE, EchoKind, EchoModel
from tests.grpc.conftest import running
from tests.grpc.requests import successor as ask_successor
from tests.grpc.requests import text_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ovchat_server.settings import Settings

SUCCESSOR = "ovchat.v1.ChatService/successor"


@pytest.fixture
def echo(tmp_path: Path) -> ModelSettings:
    (tmp_path / ECHO_FILE).write_text("9")
    return ModelSettings(name="echo", path=tmp_path)


async def test_another_kind_is_served_beside_text_generation(
    make_settings: Callable[..., Settings], echo: ModelSettings, successor: ModelSettings
) -> None:
    server = Server(make_settings(successor, echo), kinds=[EchoKind()])
    async with running(server) as client:
        assert (await client.model("echo")).type == "echo"
        engine = server._models.get_as(EchoModel, "echo").engine
        assert [character async for character in engine.echo("hi")] == ["h", "i"]
        assert text_of(await client.chat.CreateChatCompletion(ask_successor("a", 3))) == "bcd"

        request = ask_successor("a", 3)
        request.model = "echo"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.chat.CreateChatCompletion(request)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    details = caught.value.details() or ""
    assert "'echo', a model for echo, not for text-generation" in details


@pytest.mark.slow
async def test_models_come_and_go_while_the_server_serves(
    make_settings: Callable[..., Settings], echo: ModelSettings, successor: ModelSettings
) -> None:
    server = Server(make_settings(successor))
    built = EchoKind().build(echo, EngineHost((), server._changed.set, server._metrics))
    async with running(server) as client:
        server._models.add(built.model)
        await client.wait_for_health("NOT_SERVING")
        built.engine.start()
        await client.wait_for_health("SERVING")
        models = (await client.models.ListModels(model_service_pb2.ListModelsRequest())).models
        assert [model.id for model in models] == ["echo", "successor"]

        characters = built.model.engine.echo("under way")  # type: ignore[attr-defined]
        begun = await anext(characters)
        server._models.remove("echo")
        assert begun + "".join([item async for item in characters]) == "under way"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.model("echo")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        with pytest.raises(ModelNotFoundError):
            server._models.remove("echo")
        await built.engine.close()


@pytest.mark.slow
async def test_the_health_of_a_removed_model_is_unknown(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    server = Server(make_settings(successor))
    async with running(server) as client:
        await client.wait_for_health("SERVING", SUCCESSOR)

        server._models.remove("successor")

        await client.wait_for_health("SERVICE_UNKNOWN", SUCCESSOR)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.health.Check(health_pb2.HealthCheckRequest(service=SUCCESSOR))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
