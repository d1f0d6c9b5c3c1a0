"""Models that run elsewhere, beside those of this server: in lists, and at paths of providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ovchat.v1 import rest_service_pb2
from ovchat_server.domain.errors import ModelNotFoundError
from ovchat_server.domain.models import Capability, ModelState, ModelStatus, ProviderStatus
from ovchat_server.rest.model_server import ModelServerInfo
from ovchat_server.rest.server_info import ServerInfo
from ovchat_server.serving.model_registry import ModelRegistry, not_found
from ovchat_server.serving.versions import Versions
from tests.unit.serving_tools import served

if TYPE_CHECKING:
    from collections.abc import Sequence

LLAMA = "ollama/llama3:latest"
VERSIONS = Versions("1", "2", "3")


class RemoteModel:
    type = "text-generation"

    def __init__(self, identifier: str) -> None:
        self.id = identifier
        self.status = ModelStatus(
            identifier, 0, 0, (Capability.CHAT,), ModelState.READY, provider="ollama"
        )


class Ollama:
    name = "ollama"
    status = ProviderStatus("ollama", available=False, model_count=1, description="Elsewhere.")

    def models(self) -> Sequence[ModelStatus]:
        return [RemoteModel(LLAMA).status]

    def model(self, identifier: str, field: str) -> Any:
        if identifier != "llama3:latest":
            raise not_found(field, "none")
        return RemoteModel(LLAMA)


@pytest.fixture
def registry() -> ModelRegistry:
    return ModelRegistry([served()], providers=[Ollama()])


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, [("demo", "ovchat"), (LLAMA, "ollama")]),
        ({"provider": "ollama"}, [(LLAMA, "ollama")]),
        ({"provider": "openvino"}, [("demo", "ovchat")]),
        ({"provider": "ollama", "type": "text-embedding"}, []),
        ({"provider": "nobody"}, []),
    ],
)
def test_models_of_providers_are_listed(
    registry: ModelRegistry, fields: dict[str, str], found: list[tuple[str, str]]
) -> None:
    request = rest_service_pb2.RestServiceListModelsRequest(**fields)
    listed: Any = ServerInfo(registry, VERSIONS).models(request)

    assert [(model["id"], model["owned_by"]) for model in listed["data"]] == found


def test_a_model_of_a_provider_is_found_by_its_id(registry: ModelRegistry) -> None:
    request = rest_service_pb2.RestServiceGetModelRequest(id=LLAMA)
    model = ServerInfo(registry, VERSIONS).model(request)

    assert (model["id"], model["provider"]) == (LLAMA, "ollama")


def test_probes_ask_for_models_of_this_server_alone(registry: ModelRegistry) -> None:
    info = ModelServerInfo(registry, VERSIONS)

    with pytest.raises(ModelNotFoundError):
        info.ready(rest_service_pb2.RestServiceGetModelReadinessRequest(id=LLAMA))
    with pytest.raises(ModelNotFoundError):
        info.model(rest_service_pb2.RestServiceGetModelMetadataRequest(id=LLAMA))
    assert [*info.config(rest_service_pb2.RestServiceGetConfigRequest())] == ["demo"]


def test_providers_are_listed_as_abstractcore_does(registry: ModelRegistry) -> None:
    request = rest_service_pb2.RestServiceListProvidersRequest()
    assert ServerInfo(registry, VERSIONS).providers(request) == {
        "providers": [
            {
                "name": "openvino",
                "type": "llm",
                "model_count": 1,
                "status": "available",
                "description": "Models of this server.",
            },
            {
                "name": "ollama",
                "type": "llm",
                "model_count": 1,
                "status": "unavailable",
                "description": "Elsewhere.",
            },
        ]
    }
