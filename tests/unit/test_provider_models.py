"""Models that run elsewhere, beside those of this server: in lists, and at paths of providers."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from google.api import httpbody_pb2

from ovchat.v1 import rest_service_pb2
from ovchat_server.domain.errors import (
    InvalidRequestError,
    ModelNotFoundError,
)
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.models import Capability, ModelState, ModelStatus, ProviderStatus
from ovchat_server.rest.apis import GenerationApi
from ovchat_server.rest.model_server import ModelServerInfo
from ovchat_server.rest.openai.codec import chat_encoder, encode_error, read_chat
from ovchat_server.rest.provider_paths import ProviderApi
from ovchat_server.rest.request_body import BodyReader
from ovchat_server.rest.server_info import ServerInfo
from ovchat_server.serving.codec_threads import CodecThreads
from ovchat_server.serving.model_registry import ModelRegistry, not_found
from ovchat_server.serving.versions import Versions
from tests.unit.serving_tools import WORKERS, served

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.chat import ChatRequest

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


def test_an_alias_is_a_model_wherever_one_is_asked_for() -> None:
    aliases = {"claude": "demo", "org/gpt": LLAMA}
    registry = ModelRegistry([served()], providers=[Ollama()], aliases=aliases)
    info, kserve = ServerInfo(registry, VERSIONS), ModelServerInfo(registry, VERSIONS)

    listed = info.models(rest_service_pb2.RestServiceListModelsRequest())["data"]
    assert [model["id"] for model in listed] == ["demo", LLAMA, "claude", "org/gpt"]
    for alias in aliases:
        assert info.model(rest_service_pb2.RestServiceGetModelRequest(id=alias))["id"] == alias
    assert registry.get("claude") is registry.get("openvino/claude") is registry.get("demo")
    assert [status.id for status in registry.named()] == ["demo", "claude"]
    assert registry.get("org/gpt").id == LLAMA
    ready = rest_service_pb2.RestServiceGetModelReadinessRequest(id="claude")
    assert kserve.ready(ready)["ready"]
    with pytest.raises(ModelNotFoundError, match="Available models: claude, demo, org/gpt"):
        registry.get("nobody")
    described = kserve.model(rest_service_pb2.RestServiceGetModelMetadataRequest(id="claude"))
    assert described["name"] == registry.status("openvino/claude").id == "claude"

    registry.remove("demo")
    listed = info.models(rest_service_pb2.RestServiceListModelsRequest())["data"]
    assert [model["id"] for model in listed] == [LLAMA, "org/gpt"]


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


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("ollama", "llama3:latest", LLAMA),
        ("ollama", LLAMA, LLAMA),
        ("ollama", "Qwen/Qwen3-4B", "ollama/Qwen/Qwen3-4B"),
        ("ollama", "ollama/Qwen/Qwen3-4B", "ollama/Qwen/Qwen3-4B"),
        ("ollama", "ollamas/x", "ollama/ollamas/x"),
        ("openvino", "demo", "openvino/demo"),
        # The only one there is.
        ("openvino", "", ""),
        ("openvino", None, ""),
    ],
)
async def test_a_path_names_the_provider_of_the_model(
    registry: ModelRegistry, provider: str, model: str | None, expected: str
) -> None:
    assert (await asked(registry, provider, {"model": model})).model == expected


async def test_a_providers_model_has_to_be_named(registry: ModelRegistry) -> None:
    with pytest.raises(InvalidRequestError, match="model is required") as caught:
        await asked(registry, "ollama", {})
    assert (caught.value.param, caught.value.code) == ("model", "missing_required_parameter")


async def test_a_path_names_a_provider_that_there_is(registry: ModelRegistry) -> None:
    with pytest.raises(ModelNotFoundError, match=r"'nobody'. Providers: openvino, ollama\."):
        await asked(registry, "nobody", {"model": "demo"})


class AskedError(Exception):
    """A request came through."""


async def asked(registry: ModelRegistry, provider: str, fields: dict[str, Any]) -> ChatRequest:
    """The request that the API at a provider's path makes of a body."""
    seen: list[ChatRequest] = []

    async def answer(request: ChatRequest) -> Any:
        seen.append(request)
        raise AskedError

    chats = GenerationApi(read_chat, answer, chat_encoder, encode_error)
    bodies = BodyReader(strict=True, limits=DEFAULT_LIMITS, threads=CodecThreads(WORKERS, WORKERS))
    handler = ProviderApi(chats, registry).handler(bodies)
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}], **fields}).encode()
    request = rest_service_pb2.RestServiceProviderBody(
        prefix=provider, body=httpbody_pb2.HttpBody(data=body)
    )
    with contextlib.suppress(AskedError):
        await anext(handler.unary_stream(request, None))
    return seen[0]
