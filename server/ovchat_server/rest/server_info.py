"""What the server says of itself: its models, its health, its versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat.v1 import rest_service_pb2
from ovchat_server.domain.errors import UnavailableError
from ovchat_server.rest.openai.codex import catalog_model
from ovchat_server.rest.openai.models import model_object, provider_object
from ovchat_server.rest.provider_paths import provider_model
from ovchat_server.serving.models import LocalModel

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.serving.versions import Versions


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Answers GET requests."""

    registry: ModelRegistry
    versions: Versions

    def models(self, request: rest_service_pb2.RestServiceListModelsRequest) -> JsonObject:
        """Return the models, or those of a type and a provider."""
        statuses = [
            status
            for status in self.registry.listed()
            if status.matches(request.type, request.provider)
        ]
        models: JsonObject = {"object": "list", "data": [*map(model_object, statuses)]}
        if request.client_version:
            models["models"] = [*map(catalog_model, statuses)]
        return models

    def model(self, request: rest_service_pb2.RestServiceGetModelRequest) -> JsonObject:
        """Return one model.

        Raises:
            ModelNotFoundError: There is no such model.
        """
        return model_object(self.registry.status(request.id))

    def provider_models(
        self, request: rest_service_pb2.RestServiceListProviderModelsRequest
    ) -> JsonObject:
        """Return the models of a provider, or those of a type.

        Raises:
            ModelNotFoundError: There is no such provider.
        """
        self.registry.check_provider(request.prefix)
        listed = rest_service_pb2.RestServiceListModelsRequest(
            type=request.type, provider=request.prefix, client_version=request.client_version
        )
        return self.models(listed)

    def provider_model(
        self, request: rest_service_pb2.RestServiceGetProviderModelRequest
    ) -> JsonObject:
        """Return a model of a provider.

        Raises:
            ModelNotFoundError: There is no such provider, or it has no such model.
        """
        self.registry.check_provider(request.prefix)
        return model_object(self.registry.status(provider_model(request.prefix, request.id)))

    def providers(self, _: rest_service_pb2.RestServiceListProvidersRequest) -> JsonObject:
        """Return the providers of models, this server among them (AbstractCore)."""
        return {"providers": [*map(provider_object, self.registry.providers())]}

    def tokenizer(self, request: rest_service_pb2.RestServiceGetTokenizerInfoRequest) -> JsonObject:
        """Return what a model's tokenizer is configured with (vLLM).

        Raises:
            ModelNotFoundError: There is no such model.
            InvalidRequestError: It has none, or there are several models and none is named.
        """
        # mypy takes abstract classes for what cannot be asked for: its issue 4717.
        model = self.registry.get_as(LocalModel, request.model)  # type: ignore[type-abstract]
        return model.files.tokenizer_info

    def liveness(self, _: rest_service_pb2.RestServiceGetLivenessRequest) -> JsonObject:
        """Say that the server is up, or this would not run."""
        return {"status": "ok"}

    def readiness(self, _: rest_service_pb2.RestServiceGetReadinessRequest) -> JsonObject:
        """Say that every model answers.

        Raises:
            UnavailableError: One does not.
        """
        if unready := self.registry.unready():
            raise UnavailableError(f"Not ready: {unready}.", retry_after=1)
        return {"status": "ok"}

    def version(self, _: rest_service_pb2.RestServiceGetVersionRequest) -> JsonObject:
        """Return which versions run."""
        versions = self.versions
        return {
            "version": versions.ovchat,
            "openvino": versions.openvino,
            "openvino_genai": versions.openvino_genai,
        }
