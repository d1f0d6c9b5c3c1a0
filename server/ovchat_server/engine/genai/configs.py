"""genai's configurations, from ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import openvino_genai as genai

from ovchat_server.engine.contract.generation_spec import DEFAULT_KV_BLOCKS, KV_CACHE_PRECISION
from ovchat_server.engine.genai.grammar_compiler import structured

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
    from ovchat_server.engine.contract.generation_spec import GenerationOptions


def generation_config(
    request: GenerationRequest,
    stops: set[int],
    *,
    reports: bool,
    penalizes: bool,
) -> genai.GenerationConfig:
    """Return how to generate what a request asks for.

    Args:
        request: The request.
        stops: The tokens that end it.
        reports: Whether log probabilities are genai's to report, and not SequenceLogits'.
        penalizes: Whether the repetition penalty is genai's to apply, and not LogitsProcessor's.
    """
    config = genai.GenerationConfig()
    config.max_new_tokens = request.max_tokens
    config.min_new_tokens = request.min_tokens
    config.ignore_eos = request.ignore_eos
    # Ours replace the model's own list, which genai would take otherwise.
    if stops:
        config.stop_token_ids = stops
    if request.logprobs and reports:
        # The model's own, before grammar and penalties. More cost time and change nothing.
        config.logprobs = 1
    if beam_search := request.beam_search:
        config.num_beams = beam_search.width
        config.num_return_sequences = beam_search.returned
        config.length_penalty = beam_search.length_penalty
        return config
    if request.grammar:
        config.structured_output_config = structured(request.grammar)
    _set_sampling(config, request.sampling)
    if penalizes:
        config.repetition_penalty = request.sampling.repetition_penalty
    return config


def greedy_config(max_tokens: int) -> genai.GenerationConfig:
    """Return how to generate the likeliest tokens, whatever they are."""
    config = genai.GenerationConfig()
    config.max_new_tokens = max_tokens
    config.ignore_eos = True
    return config


def scheduler_config(options: GenerationOptions) -> genai.SchedulerConfig:
    """Return how much memory the KV cache takes, and what a step may read."""
    config = genai.SchedulerConfig()
    # A fixed size: a cache that grows takes the machine's memory before it is full.
    if options.kv_cache_gb is not None:
        config.cache_size = options.kv_cache_gb * counted_twice(options)
    else:
        config.num_kv_blocks = options.kv_blocks or DEFAULT_KV_BLOCKS
    config.max_num_batched_tokens = options.max_num_batched_tokens
    config.enable_prefix_caching = True
    return config


def device_properties(options: GenerationOptions) -> dict[str, str | int | float | bool]:
    """Return OpenVINO's properties of a model: those given, and what other options set."""
    if options.kv_cache_precision is None:
        return options.properties
    return {**options.properties, KV_CACHE_PRECISION: options.kv_cache_precision}


def counted_twice(options: GenerationOptions) -> int:
    """Return how often genai counts each byte of the KV cache (2026.4.1).

    Twice where it holds numbers of 4 bits, of which genai takes each to be a byte.
    """
    return 2 if device_properties(options).get(KV_CACHE_PRECISION) == "u4" else 1


def _set_sampling(config: genai.GenerationConfig, sampling: Sampling) -> None:
    if sampling.temperature > 0:
        config.do_sample = True
        config.temperature = sampling.temperature
        config.top_p = sampling.top_p
        config.min_p = sampling.min_p
        config.rng_seed = sampling.seed
        if sampling.top_k > 0:
            config.top_k = sampling.top_k
