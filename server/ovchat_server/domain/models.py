"""The models that are served, and their state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# As AbstractCore names them, whose callers choose models by type and provider.
MODEL_TYPE = "text-generation"
EMBEDDING_TYPE = "text-embedding"
RERANK_TYPE = "rerank"
PROVIDER = "openvino"


class ModelState(StrEnum):
    """The state of a model.

    UNAVAILABLE is tried again by itself, FAILED only once its files have changed.
    """

    LOADING = "loading"
    READY = "ready"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"


class Capability(StrEnum):
    """A capability of a model."""

    CHAT = "chat"
    TOOLS = "tools"
    REASONING = "reasoning"
    VISION = "vision"


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """The load of an engine after its last step.

    Attributes:
        running_requests: The number of sequences in the batch.
        waiting_requests: The number of sequences that wait for KV blocks.
        peak_batch_size: The maximum number of sequences that generated in one step.
        generated_tokens: The number of tokens generated since the engine started.
        preemptions: The number of sequences that gave up their KV blocks, to be resumed later.
    """

    running_requests: int = 0
    waiting_requests: int = 0
    used_kv_blocks: int = 0
    total_kv_blocks: int = 0
    peak_batch_size: int = 0
    generated_tokens: int = 0
    preemptions: int = 0


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A model and its state.

    Attributes:
        created: The time at which its files were written, in seconds since the Unix epoch.
        context_length: The maximum number of tokens of prompt and answer together; 0 until it
            was loaded for the first time.
        state_reason: The reason why it is not ready, for operators; "" if it is.
        load: The load of its engine; None while there is none.
        sampling_control: Whether its device can change logits and report the most likely tokens.
    """

    id: str
    created: int
    context_length: int
    capabilities: tuple[Capability, ...]
    state: ModelState
    state_reason: str = ""
    load: EngineLoad | None = None
    type: str = MODEL_TYPE
    provider: str = PROVIDER
    sampling_control: bool = True

    @property
    def input_modalities(self) -> tuple[str, ...]:
        """What a message to it may hold (OpenRouter, llama.cpp)."""
        return ("text", "image") if Capability.VISION in self.capabilities else ("text",)

    @property
    def unavailable_reason(self) -> str:
        """Why the model does not answer; "" if it does."""
        if self.state is ModelState.READY:
            return ""
        return f"{self.id}: {self.state_reason or self.state}"

    def matches(self, model_type: str, provider: str) -> bool:
        """Return whether it has this type and provider, where "" stands for any."""
        return model_type in ("", self.type) and provider in ("", self.provider)


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """A provider of models, as AbstractCore's server describes it.

    Attributes:
        name: The name that its models' ids begin with; PROVIDER for this server itself.
        available: Whether it answered the last time that it was asked for its models.
        model_count: The number of its models that are known.
        description: A sentence for people.
    """

    name: str
    available: bool
    model_count: int
    description: str
    type: str = "llm"
