"""From the domain's models and providers to messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat.v1 import model_service_pb2, provider_service_pb2
from ovchat_server.domain.models import Capability, ModelState

if TYPE_CHECKING:
    from ovchat_server.domain.models import ModelStatus, ProviderStatus

STATES = {
    ModelState.LOADING: model_service_pb2.MODEL_STATE_LOADING,
    ModelState.READY: model_service_pb2.MODEL_STATE_READY,
    ModelState.UNAVAILABLE: model_service_pb2.MODEL_STATE_UNAVAILABLE,
    ModelState.FAILED: model_service_pb2.MODEL_STATE_FAILED,
}
CAPABILITIES = {
    Capability.CHAT: model_service_pb2.CAPABILITY_CHAT,
    Capability.TOOLS: model_service_pb2.CAPABILITY_TOOLS,
    Capability.REASONING: model_service_pb2.CAPABILITY_REASONING,
    Capability.VISION: model_service_pb2.CAPABILITY_VISION,
}


def model(status: ModelStatus) -> model_service_pb2.Model:
    """Return a model and how it is doing."""
    load = status.load
    return model_service_pb2.Model(
        id=status.id,
        created=status.created,
        context_length=status.context_length,
        capabilities=[CAPABILITIES[capability] for capability in status.capabilities],
        state=STATES[status.state],
        state_reason=status.state_reason,
        type=status.type,
        provider=status.provider,
        sampling_control=status.sampling_control,
        load=None
        if load is None
        else model_service_pb2.EngineLoad(
            running_requests=load.running_requests,
            waiting_requests=load.waiting_requests,
            used_kv_blocks=load.used_kv_blocks,
            total_kv_blocks=load.total_kv_blocks,
            peak_batch_size=load.peak_batch_size,
            generated_tokens=load.generated_tokens,
            preemptions=load.preemptions,
        ),
    )


def provider(status: ProviderStatus) -> provider_service_pb2.Provider:
    """Return a provider of models."""
    return provider_service_pb2.Provider(
        name=status.name,
        type=status.type,
        model_count=status.model_count,
        state=provider_service_pb2.PROVIDER_STATE_AVAILABLE
        if status.available
        else provider_service_pb2.PROVIDER_STATE_UNAVAILABLE,
        description=status.description,
    )
