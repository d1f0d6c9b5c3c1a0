"""What an engine process that generates tokens is sent first."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ovchat_server.domain.generation import MAX_ASSISTANT_TOKENS, MAX_NGRAM_SIZE
from ovchat_server.engine.contract.spec import Count, Duration, EngineOptions, EngineSpec

DEFAULT_KV_BLOCKS = 512
MIN_KV_BLOCKS = 4
# OpenVINO's name of kv_cache_precision.
KV_CACHE_PRECISION = "KV_CACHE_PRECISION"


class GenerationOptions(EngineOptions, frozen=True, kw_only=True):
    """How to run a model that generates tokens.

    Attributes:
        device: OpenVINO's name of a device, such as "CPU" or "GPU.0".
        kv_blocks: Size of the KV cache in blocks of 32 tokens (16 on a GPU), shared by all
            callers (docs/models.md).
        kv_cache_gb: Size of the KV cache in GiB, a whole number, instead of `kv_blocks`.
        kv_cache_precision: What the KV cache keeps a number in: "u4", "u8", "f16", "bf16" or "f32".
            Unset: what the model's graph asks for, or else OpenVINO's choice, "u8" on a CPU.
            docs/models.md says what each costs.
        max_num_batched_tokens: Most tokens processed in one step. A longer prompt takes several
            steps, and each running request gets a token in between.
        max_step_seconds: Target for the longest step, in seconds. A step reads only as many
            prompt tokens as fit, by the machine's recent speed. A lower value keeps streams moving
            and lets short prompts overtake long ones; a higher one reads long prompts faster.
            0: no limit.
        grammar_timeout: Seconds that compiling the grammar of an answer may take.
        max_mask_seconds: Seconds that a step may take to choose tokens, at least: as many as the
            model takes are no harm. To find out which tokens grammars allow can take long. While
            steps take longer, and several clients are served, answers whose grammars are slow end
            with an error. 0: no limit.
        speculation: How tokens are proposed for a step, so that several may come of it: "lookup"
            proposes what followed the last tokens where they stood before (prompt lookup), "draft"
            what a smaller model would write (`draft_model`). Not with vision models.
            docs/models.md says what it is good for, and what it changes.
        num_assistant_tokens: The most tokens that are proposed to a request for a step, unless it
            or the model's `generation_config.json` says. How many are is decided by how likely
            they are, and by how much longer a step takes for them.
        max_ngram_size: How many of the last tokens are looked up, unless a request or the model's
            `generation_config.json` says. All of them must be found, as in vLLM where
            `prompt_lookup_min` and `prompt_lookup_max` are the same. Without effect on drafts.
        assistant_confidence_threshold: How likely the draft model must find each token that it
            proposes, unless a request or the model's `generation_config.json` says. 0: it proposes
            whatever it finds the likeliest. Without effect on prompt lookup.
        properties: OpenVINO's own properties, as a table.
    """

    device: str = "CPU"
    kv_blocks: Annotated[int, msgspec.Meta(ge=MIN_KV_BLOCKS)] | None = None
    kv_cache_gb: Count | None = None
    kv_cache_precision: Literal["u4", "u8", "f16", "bf16", "f32"] | None = None
    max_num_batched_tokens: Count = 2048
    max_step_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.25
    grammar_timeout: Duration = 1.5
    max_mask_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.02
    speculation: Literal["lookup", "draft"] | None = None
    num_assistant_tokens: Annotated[int, msgspec.Meta(ge=1, le=MAX_ASSISTANT_TOKENS)] = (
        MAX_ASSISTANT_TOKENS
    )
    max_ngram_size: Annotated[int, msgspec.Meta(ge=1, le=MAX_NGRAM_SIZE)] = 3
    assistant_confidence_threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
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
        if self.kv_cache_precision is not None and KV_CACHE_PRECISION in self.properties:
            raise ValueError(
                f"kv_cache_precision and {KV_CACHE_PRECISION} in properties are the same: set one"
            )


class GenerationSpec(EngineSpec, frozen=True, kw_only=True):
    """A model that generates tokens, and how to run it.

    Attributes:
        context_length: Most tokens of prompt and answer that the model was made for.
        end_tokens: Tokens that end an answer, besides the tokenizer's own.
        draft_model: Folder of the model whose tokens are proposed; "" for none.
        draft_context_length: Most tokens that one was made for; 0: as many as the other.
    """

    context_length: int
    end_tokens: tuple[int, ...]
    draft_model: str = ""
    draft_context_length: int = 0
    worker: str = "ovchat_server.engine.genai.worker:load"
    options: GenerationOptions = GenerationOptions()
