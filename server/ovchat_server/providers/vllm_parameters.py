"""vLLM's parameters of generation, by their names on the wire. None: it is not set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import TruncationSide

if TYPE_CHECKING:
    from ovchat_server.domain.generation import (
        BeamSearch,
        GenerationParams,
        SpeculationParams,
        Truncation,
    )
    from ovchat_server.domain.json_value import JsonObject


def of_generation(generation: GenerationParams) -> JsonObject:
    """Return all but those of beams and speculation."""
    sampling, ending = generation.sampling, generation.ending
    own: JsonObject = {
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "allowed_token_ids": list(sampling.allowed_token_ids) or None,
        "bad_words": list(sampling.bad_words) or None,
        "min_tokens": ending.min_tokens or None,
        "ignore_eos": ending.ignore_eos or None,
        "stop_token_ids": list(ending.stop_token_ids) or None,
        "include_stop_str_in_output": ending.include_stop or None,
        "skip_special_tokens": None if generation.skip_special_tokens else False,
        "prompt_logprobs": generation.prompt_logprobs,
        "priority": generation.priority or None,
        "cache_salt": generation.cache_salt,
    }
    return own | (_truncation(generation.truncation) if generation.truncation else {})


def of_beams(beams: BeamSearch) -> JsonObject:
    """Return those of a beam search."""
    by_width = beams.field == FieldPath.of("best_of")
    return {
        # vLLM searches with `n` beams, OVMS with `best_of`.
        "use_beam_search": True,
        "best_of": beams.width if by_width else None,
        "length_penalty": None if beams.length_penalty == 1 else beams.length_penalty,
    }


def beams_field(beams: BeamSearch) -> FieldPath:
    """Return what the caller asked for beams by."""
    # It is `n` where nothing else but use_beam_search asks for beams.
    return FieldPath.of("use_beam_search") if beams.field == FieldPath.of("n") else beams.field


def of_speculation(speculation: SpeculationParams) -> JsonObject:
    """Return those of speculation, which never change an answer."""
    return {
        "num_assistant_tokens": speculation.num_assistant_tokens,
        "max_ngram_size": speculation.max_ngram_size,
        "assistant_confidence_threshold": speculation.assistant_confidence_threshold,
    }


def _truncation(truncation: Truncation) -> JsonObject:
    right = truncation.side is TruncationSide.RIGHT
    return {
        "truncate_prompt_tokens": -1 if truncation.tokens is None else truncation.tokens,
        "truncation_side": str(truncation.side) if right else None,
    }
