"""What is served, and how it is doing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# AbstractCore's words, by which its callers choose among models: what ours are.
MODEL_TYPE = "text-generation"
PROVIDER = "openvino"


class ModelState(StrEnum):
    """Whether a model answers."""

    LOADING = "loading"
    READY = "ready"
    UNAVAILABLE = "unavailable"


class Capability(StrEnum):
    """Something a model can do."""

    CHAT = "chat"
    TOOLS = "tools"
    REASONING = "reasoning"


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """What an engine is doing, as of its last step.

    Attributes:
        running_requests: In the batch.
        waiting_requests: Waiting for a place in the KV cache.
        peak_batch_size: The most requests that generated in one step, ever.
        generated_tokens: Since the engine started.
        preemptions: Times a running request gave up its place, to be resumed later.
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
    """A model and how it is doing.

    Attributes:
        created: When its files were written, in seconds since 1970 (UTC).
        context_length: Most tokens of prompt and answer together; 0 until loaded once.
        state_reason: Why it does not answer, for an operator; "" where it does.
        load: None while there is no engine.
        sampling_control: It serves what changes logits, or tells the likeliest tokens: its
            device can do that.
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

    def matches(self, model_type: str, provider: str) -> bool:
        """Whether it is of a type and a provider; "" asks for any."""
        return model_type in ("", self.type) and provider in ("", self.provider)
