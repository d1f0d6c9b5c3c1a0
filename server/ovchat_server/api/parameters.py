"""Every parameter of a chat request that we know, and what becomes of it.

A parameter is served, accepted without effect, or refused by name where it would change
the answer. Any other key is unknown: ignored, and named to the caller. The names are
those of OpenAI, OVMS (May 2026) and vLLM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.api.json_value import JsonValue
    from ovchat_server.api.reader import Reader

SERVED = frozenset(
    {
        "model",
        "messages",
        "max_completion_tokens",
        "max_tokens",
        "stop",
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "tools",
        "tool_choice",
        "reasoning_effort",
        "chat_template_kwargs",
        "stream",
        "stream_options",
    }
)

# They never change the answer: bookkeeping, hints about caching and cost.
ACCEPTED = frozenset(
    {
        "user",
        "metadata",
        "store",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "verbosity",
        "prediction",
        "request_id",
        "session_id",
    }
)

# Refused, but for the values given, which ask for what happens anyway.
UNSUPPORTED: Mapping[str, tuple[JsonValue, ...]] = {
    # Length
    "min_tokens": (0,),
    "ignore_eos": (False,),
    "stop_token_ids": ([],),
    "include_stop_str_in_output": (False,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "truncate_prompt_tokens": (),
    "truncation_side": (),
    # Sampling
    "min_p": (0,),
    "repetition_penalty": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "allowed_token_ids": ([],),
    "bad_words": ([],),
    "watermarking": (False,),
    "repetition_detection": (),
    # Choices
    "n": (1,),
    "best_of": (1,),
    "use_beam_search": (False,),
    "length_penalty": (1,),
    # Log probabilities and token ids
    "logprobs": (False,),
    "top_logprobs": (0,),
    "prompt_logprobs": (),
    "logprob_token_ids": ([],),
    "return_token_ids": (False,),
    "return_tokens_as_token_ids": (False,),
    "return_prompt_text": (False,),
    "return_token_offsets": (False,),
    # Tools and form of the answer
    "parallel_tool_calls": (True,),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "structured_outputs": (),
    "guided_json": (),
    "guided_regex": (),
    "guided_choice": (),
    "guided_grammar": (),
    "structural_tag": (),
    "agent_format": ("openai", "auto"),
    "include_reasoning": (True,),
    "thinking_token_budget": (-1,),
    # Prompt
    "chat_template": (),
    "add_generation_prompt": (True,),
    "add_special_tokens": (False,),
    "continue_final_message": (False,),
    "echo": (False,),
    "documents": ([],),
    "mm_processor_kwargs": ({},),
    "media_io_kwargs": ({},),
    "cache_salt": (),
    # Scheduling and speculation
    "priority": (0,),
    "num_assistant_tokens": (),
    "assistant_confidence_threshold": (),
    "max_ngram_size": (),
    # Other modalities and services
    "modalities": (["text"], []),
    "audio": (),
    "moderation": (),
    "web_search_options": (),
}


def refuse_unsupported(reader: Reader) -> None:
    """Note a violation for every parameter that we know but cannot honour."""
    for name, neutral in UNSUPPORTED.items():
        if reader.present(name) and not any(_same(reader.fields[name], item) for item in neutral):
            complaint = "is not supported; leave it out"
            if neutral:
                complaint = "is only supported as " + _shown(neutral[0])
            reader.refuse(name, complaint, "unsupported_parameter")


def unknown(fields: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """The keys that no API we follow defines, in the caller's order."""
    return tuple(
        name
        for name in fields
        if name not in SERVED and name not in ACCEPTED and name not in UNSUPPORTED
    )


def _same(value: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same JSON: to Python true is 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _shown(value: JsonValue) -> str:
    """A value as the caller would write it."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case list():
            return f"[{', '.join(map(_shown, value))}]"
        case dict():
            return (
                f"{{{', '.join(f'{_shown(key)}: {_shown(item)}' for key, item in value.items())}}}"
            )
    return str(value)
