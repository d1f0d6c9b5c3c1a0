from __future__ import annotations

import sysconfig
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_health.v1 import health_pb2

from ovchat.v1 import model_service_pb2, provider_service_pb2, server_service_pb2

if TYPE_CHECKING:
    from tests.grpc.conftest import Client

SCRIPTS = Path(sysconfig.get_path("scripts"))


async def test_lists_models_with_what_they_can_do(client: Client) -> None:
    response = await client.models.ListModels(model_service_pb2.ListModelsRequest())

    demo, successor = response.models
    assert (demo.id, successor.id) == ("demo", "successor")
    assert demo.state == model_service_pb2.MODEL_STATE_READY
    assert demo.context_length == 4096
    assert demo.load.total_kv_blocks == 512
    assert list(demo.capabilities) == [
        model_service_pb2.CAPABILITY_CHAT,
        model_service_pb2.CAPABILITY_TOOLS,
        model_service_pb2.CAPABILITY_REASONING,
    ]
    assert list(successor.capabilities) == [model_service_pb2.CAPABILITY_CHAT]
    assert (demo.type, demo.provider) == ("text-generation", "openvino")
    assert demo.sampling_control


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"type": "text-generation"}, 2),
        ({"provider": "openvino"}, 2),
        ({"type": "text-generation", "provider": "openvino"}, 2),
        ({"type": "", "provider": ""}, 2),
        ({"type": "text-embedding"}, 0),
        ({"provider": "ollama"}, 0),
        ({"type": "text-generation", "provider": "ollama"}, 0),
        ({"type": "text-embedding", "provider": "openvino"}, 0),
    ],
)
async def test_models_are_chosen_by_type_and_provider(
    client: Client, fields: dict[str, str], found: int
) -> None:
    response = await client.models.ListModels(model_service_pb2.ListModelsRequest(**fields))

    assert len(response.models) == found


async def test_this_server_is_a_provider(client: Client) -> None:
    request = provider_service_pb2.ListProvidersRequest()
    [provider] = (await client.providers.ListProviders(request)).providers

    assert (provider.name, provider.type, provider.model_count) == ("openvino", "llm", 2)
    assert provider.state == provider_service_pb2.PROVIDER_STATE_AVAILABLE
    assert provider.description


async def test_versions_are_those_installed(client: Client) -> None:
    version = await client.server_service.GetVersion(server_service_pb2.GetVersionRequest())

    assert version.version == metadata.version("ovchat")
    assert version.openvino == metadata.version("openvino")
    assert version.openvino_genai == metadata.version("openvino-genai")


@pytest.mark.parametrize(
    "service",
    [
        "",
        "ovchat.v1.ChatService",
        # Of no models: none is missing.
        "ovchat.v1.EmbeddingService",
        "ovchat.v1.ModelService",
        "ovchat.v1.ProviderService",
        "ovchat.v1.RerankService",
        "ovchat.v1.RestService",
        "ovchat.v1.ServerService",
        "ovchat.v1.TokenizerService",
        "ovchat.v1.ChatService/demo",
        "ovchat.v1.ChatService/successor",
    ],
)
async def test_health_knows_every_service_and_model(client: Client, service: str) -> None:
    response = await client.health.Check(health_pb2.HealthCheckRequest(service=service))

    assert response.status == health_pb2.HealthCheckResponse.SERVING


async def test_health_is_told_of_everything_at_once(client: Client) -> None:
    response = await client.health.List(health_pb2.HealthListRequest())

    assert {"", "ovchat.v1.ChatService", "ovchat.v1.ChatService/demo"} <= set(response.statuses)
    for status in response.statuses.values():
        assert status.status == health_pb2.HealthCheckResponse.SERVING


async def test_health_does_not_know_other_names(client: Client) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.health.Check(health_pb2.HealthCheckRequest(service="nobody"))

    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_an_unknown_method_is_unimplemented(client: Client) -> None:
    call = client.channel.unary_unary("/ovchat.v1.ChatService/Nothing")

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(b"")

    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
