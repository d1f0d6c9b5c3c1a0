"""What probes and consoles of OVMS's and KServe's users ask for: the server, models, their state.

The shapes are those of KServe's Open Inference Protocol (v2) and of OVMS's config API. Models
take messages, not tensors, so they have no inputs and outputs there, and always version 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import UnavailableError
from ovchat_server.domain.models import ModelState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat.v1 import rest_service_pb2
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.serving.versions import Versions

VERSION = "1"
# OVMS's states of a version, and the code of its status; a model that is tried again is loading.
STATES: Mapping[ModelState, str] = {
    ModelState.LOADING: "LOADING",
    ModelState.READY: "AVAILABLE",
    ModelState.UNAVAILABLE: "LOADING",
    ModelState.FAILED: "LOADING",
}


@dataclass(frozen=True, slots=True)
class ModelServerInfo:
    """Answers GET requests, of the models that this server runs."""

    registry: ModelRegistry
    versions: Versions

    def server(self, _: rest_service_pb2.RestServiceGetServerMetadataRequest) -> JsonObject:
        """Return the server's name and version (KServe), and where its API is."""
        return {
            "name": "ovchat",
            "version": self.versions.ovchat,
            "extensions": [],
            "chat_completions": "/v3/chat/completions",
            "embeddings": "/v3/embeddings",
            "rerank": "/v3/rerank",
            "score": "/v3/score",
            "models": "/v3/models",
            "providers": "/v3/providers",
        }

    def model(self, request: rest_service_pb2.RestServiceGetModelMetadataRequest) -> JsonObject:
        """Return a model's name and platform (KServe).

        Raises:
            ModelNotFoundError: There is no such model.
        """
        status = self.registry.local_status(request.id)
        return {
            "name": status.id,
            "versions": [VERSION],
            "platform": "OpenVINO",
            "inputs": [],
            "outputs": [],
        }

    def ready(self, request: rest_service_pb2.RestServiceGetModelReadinessRequest) -> JsonObject:
        """Say that a model answers (KServe).

        Raises:
            ModelNotFoundError: There is no such model.
            UnavailableError: It does not answer.
        """
        status = self.registry.local_status(request.id)
        if status.unavailable_reason:
            # A model that cannot be loaded will not be ready in a moment either.
            retry_after = None if status.state is ModelState.FAILED else 1
            raise UnavailableError(
                f"Not ready: {status.unavailable_reason}.", retry_after=retry_after
            )
        return {"name": status.id, "ready": True}

    def config(self, _: rest_service_pb2.RestServiceGetConfigRequest) -> JsonObject:
        """Return the state of each model (OVMS)."""
        return {status.id: _version(status.state) for status in self.registry.statuses()}


def _version(state: ModelState) -> JsonValue:
    # As OVMS has it of a model that it could not load.
    code = "UNKNOWN" if state is ModelState.FAILED else "OK"
    return {
        "model_version_status": [
            {
                "version": VERSION,
                "state": STATES[state],
                "status": {"error_code": code, "error_message": code},
            }
        ]
    }
