"""Models as OpenAI lists them, and their providers as AbstractCore does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.models import PROVIDER

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.models import ModelStatus, ProviderStatus

# Of the models of this server.
OWNER = "ovchat"


def model_object(status: ModelStatus) -> JsonObject:
    """Return a model; the context length under vLLM's name, too."""
    return {
        "id": status.id,
        "object": "model",
        "created": status.created,
        "owned_by": OWNER if status.provider == PROVIDER else status.provider,
        "max_model_len": status.context_length or None,
        "context_length": status.context_length or None,
        "capabilities": [str(capability) for capability in status.capabilities],
        "input_modalities": [*status.input_modalities],
        "type": status.type,
        "provider": status.provider,
        "state": str(status.state),
        "sampling_control": status.sampling_control,
    }


def provider_object(status: ProviderStatus) -> JsonObject:
    """Return a provider of models (AbstractCore)."""
    return {
        "name": status.name,
        "type": status.type,
        "model_count": status.model_count,
        "status": "available" if status.available else "unavailable",
        "description": status.description,
    }
