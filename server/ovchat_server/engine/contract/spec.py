"""What an engine process is told at its start."""

from __future__ import annotations

import msgspec


class EngineSpec(msgspec.Struct, frozen=True):
    """A model and how to run it.

    Attributes:
        name: The model's id, shown by `ps`.
        path: Its folder, absolute.
        device: OpenVINO's name of a device, such as "CPU" or "GPU.0".
        kv_blocks: Size of the KV cache in blocks (32 tokens on a CPU, 16 on a GPU).
        kv_cache_gb: Its size in GiB, where `kv_blocks` is None; a whole number of them.
        max_num_batched_tokens: Most tokens of one step: a longer prompt takes several, and
            running sequences get a token each in between.
        max_step_seconds: Seconds that a step may take that reads prompts, as far as can be
            foreseen: it reads so much less. 0: any time.
        context_length: Most tokens of prompt and answer that the model was made for.
        end_tokens: Tokens that end an answer, besides the tokenizer's own.
        grammar_timeout: Seconds that compiling a grammar may take.
        load_timeout: Seconds that loading the model may take.
        step_timeout: Seconds that a step may take; an engine that is silent for longer hangs.
        max_queue: Most requests that may wait for their first place.
        max_queue_wait: Seconds that each of them may.
        processors: Those that it may run on; none: as the server.
        properties: OpenVINO's, such as {"INFERENCE_PRECISION_HINT": "f32"}.
    """

    name: str
    path: str
    device: str
    kv_blocks: int | None
    kv_cache_gb: int
    max_num_batched_tokens: int
    context_length: int
    end_tokens: tuple[int, ...]
    properties: dict[str, str | int | float | bool]
    max_step_seconds: float = 0.25
    grammar_timeout: float = 1.5
    load_timeout: float = 600.0
    step_timeout: float = 120.0
    max_queue: int = 256
    max_queue_wait: float = 60.0
    processors: tuple[int, ...] = ()
