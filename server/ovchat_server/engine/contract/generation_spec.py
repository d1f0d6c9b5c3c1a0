"""What an engine process that generates tokens is sent first."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ovchat_server.engine.contract.spec import Count, Duration, EngineOptions, EngineSpec

DEFAULT_KV_BLOCKS = 512
MIN_KV_BLOCKS = 4


class GenerationOptions(EngineOptions, frozen=True, kw_only=True):
    """How to run a model that generates tokens.

    Attributes:
        device: OpenVINO's name of a device, such as "CPU" or "GPU.0".
        kv_blocks: Size of the KV cache in blocks (32 tokens on a CPU, 16 on a GPU).
        kv_cache_gb: Its size in GiB instead, a whole number. Neither: DEFAULT_KV_BLOCKS.
        max_num_batched_tokens: Most tokens of one step: a longer prompt takes several, and
            running sequences get a token each in between.
        max_step_seconds: Seconds that a step should take at the most: it reads so much less of
            all prompts together, as fast as the machine was lately. Less keeps streams moving and
            lets short prompts overtake long ones, more reads long prompts faster. 0: any time.
        grammar_timeout: Seconds that compiling the grammar of an answer may take.
        properties: OpenVINO's, such as {"INFERENCE_PRECISION_HINT": "f32"}.
    """

    device: str = "CPU"
    kv_blocks: Annotated[int, msgspec.Meta(ge=MIN_KV_BLOCKS)] | None = None
    kv_cache_gb: Count | None = None
    max_num_batched_tokens: Count = 2048
    max_step_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.25
    grammar_timeout: Duration = 1.5
    properties: Annotated[
        dict[str, str | int | float | bool],
        msgspec.Meta(description="a table of strings, numbers and booleans"),
    ] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what types cannot say.

        Raises:
            ValueError: Options contradict each other.
        """
        if self.kv_blocks is not None and self.kv_cache_gb is not None:
            raise ValueError("kv_blocks and kv_cache_gb both set the KV cache's size: set one")


class GenerationSpec(EngineSpec, frozen=True, kw_only=True):
    """A model that generates tokens, and how to run it.

    Attributes:
        context_length: Most tokens of prompt and answer that the model was made for.
        end_tokens: Tokens that end an answer, besides the tokenizer's own.
    """

    context_length: int
    end_tokens: tuple[int, ...]
    worker: str = "ovchat_server.engine.genai.worker:load"
    options: GenerationOptions = GenerationOptions()
