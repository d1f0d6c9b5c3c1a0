"""The known parameters of each endpoint, and how they are treated.

A parameter is served, accepted without effect, or refused by name where it would change
the answer. Any other key is unknown: ignored, and reported to the caller. The names are
those of OpenAI, OVMS (May 2026) and vLLM; docs/parameters.md documents them for callers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import shortened
from ovchat_server.domain.field_path import FieldPath

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.reader import Reader


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of an endpoint.

    Attributes:
        served: Those that work as their API documents.
        accepted: Those that never change the answer: bookkeeping, hints about caching and cost.
        refused: Those that are refused, unless they have one of the values, which ask for what
            happens anyway.
        acting: Of the refused, those that act beside some others only: whether they would in a
            request. Where they would not, any value is accepted.
    """

    served: frozenset[str]
    accepted: frozenset[str] = frozenset()
    refused: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=dict)
    acting: Mapping[str, Callable[[Reader], bool]] = field(default_factory=dict)

    def check(self, reader: Reader, *, strict: bool) -> tuple[str, ...]:
        """Add violations for refused parameters to the reader, and return the unknown keys.

        To be called after everything else was read, when the reader knows of unknown keys
        within objects.

        Args:
            reader: The reader of the request.
            strict: Whether unknown keys are violations, too.

        Returns:
            The paths of the unknown keys.
        """
        for name, neutral in self.refused.items():
            acts = self.acting.get(name)
            if (
                reader.present(name)
                and not any(_same(reader.fields[name], item) for item in neutral)
                and (acts is None or acts(reader))
            ):
                complaint = "is not supported; leave it out"
                if neutral:
                    complaint = "is only supported as " + _shown(neutral[0])
                reader.refuse(name, complaint, "unsupported_parameter")
        known = self.served | self.accepted | self.refused.keys()
        unknown = [FieldPath.of(name) for name in reader.fields if name not in known]
        unknown += reader.unknown
        if strict:
            for path in unknown:
                *outside, key = path.steps
                shown = FieldPath.of(*outside, shortened(str(key)))
                reader.refuse(shown, "is not a known parameter", "unknown_parameter")
        return tuple(map(str, unknown))

    def accepted_in(self, reader: Reader) -> tuple[str, ...]:
        """Return the names of parameters that are set, and never change the answer."""
        return tuple(sorted(filter(reader.fields.get, self.accepted)))


# Of a single answer, whichever API it is asked for by.
ANSWER_PARAMETERS = frozenset(
    {
        "min_tokens",
        "ignore_eos",
        "stop",
        "stop_token_ids",
        "include_stop_str_in_output",
        "skip_special_tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "allowed_token_ids",
        "bad_words",
        "seed",
        "structured_outputs",
        "priority",
        "cache_salt",
        "num_assistant_tokens",
        "max_ngram_size",
        "assistant_confidence_threshold",
    }
)

_GENERATION_SERVED = ANSWER_PARAMETERS | frozenset(
    {
        "model",
        "max_tokens",
        "truncate_prompt_tokens",
        "truncation_side",
        "n",
        "best_of",
        "use_beam_search",
        "length_penalty",
        "logprobs",
        "prompt_logprobs",
        "echo",
        "stream",
        "stream_options",
        "response_format",
        "guided_json",
        "guided_regex",
        "guided_choice",
        "guided_grammar",
        "structural_tag",
    }
)

_GENERATION_ACCEPTED = frozenset(
    {
        "user",
        "request_id",
        "session_id",
        # The joined stream is the same however many tokens a chunk has.
        "stream_interval",
        # No answer tells of its experts.
        "routed_experts_prompt_start",
    }
)

_GENERATION_REFUSED: Mapping[str, tuple[JsonValue, ...]] = {
    # Sampling
    "watermarking": (False,),
    "repetition_detection": (),
    # Log probabilities and token ids
    "logprob_token_ids": ([],),
    "return_tokens_as_token_ids": (False,),
    "return_token_offsets": (False,),
    # The format of the answer
    "spaces_between_special_tokens": (True,),
    # Of vLLM's engine and its parts
    "early_stopping": (False,),
    "detokenize": (True,),
    "logits_processors": ([],),
    "vllm_xargs": ({},),
    "kv_transfer_params": ({},),
    "ec_transfer_params": ({},),
}


def _searches(reader: Reader) -> bool:
    asked, best_of = reader.fields.get("use_beam_search"), reader.fields.get("best_of")
    return asked is True or best_of not in (None, 1)


def _shows_special_tokens(reader: Reader) -> bool:
    return reader.fields.get("skip_special_tokens") is False


def _reports_tokens(reader: Reader) -> bool:
    # False asks for none; in text completions a number asks, 0 as well.
    return reader.present("logprobs") and reader.fields["logprobs"] is not False


_GENERATION_ACTING: Mapping[str, Callable[[Reader], bool]] = {
    "early_stopping": _searches,
    "spaces_between_special_tokens": _shows_special_tokens,
    "return_tokens_as_token_ids": _reports_tokens,
    "logprob_token_ids": _reports_tokens,
}

# What shapes the prompt of a conversation, besides its messages.
PROMPT_PARAMETERS = (
    "tools",
    "tool_choice",
    "reasoning_effort",
    "chat_template_kwargs",
    "add_generation_prompt",
    "continue_final_message",
    "documents",
)

_PROMPT_REFUSED: Mapping[str, tuple[JsonValue, ...]] = {
    # A template is code: the model's own, never a caller's.
    "chat_template": ("",),
    # How images are read is the model's own, too.
    "mm_processor_kwargs": ({},),
    "media_io_kwargs": ({},),
}

CHAT = Parameters(
    served=_GENERATION_SERVED
    | {
        "messages",
        *PROMPT_PARAMETERS,
        "max_completion_tokens",
        "top_logprobs",
        "parallel_tool_calls",
        "functions",
        "function_call",
        "include_reasoning",
        "thinking_token_budget",
        "agent_format",
        "prediction",
    },
    accepted=_GENERATION_ACCEPTED
    | {
        # Acts where modalities ask for audio, which are refused.
        "audio",
        # Acts where prompts are only rendered.
        "return_mm_kwargs",
        "metadata",
        "store",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "verbosity",
    },
    refused={
        **_GENERATION_REFUSED,
        "return_token_ids": (False,),
        "return_prompt_text": (False,),
        # Where models run, and with whose key, says the operator alone (AbstractCore).
        "base_url": (),
        "api_key": (),
        # Prompt
        **_PROMPT_REFUSED,
        "add_special_tokens": (False,),
        # Other modalities and services
        "modalities": (["text"], []),
        "moderation": (),
        "web_search_options": (),
    },
    acting=_GENERATION_ACTING,
)

TEXT = Parameters(
    served=_GENERATION_SERVED | {"prompt", "add_special_tokens", "return_token_ids"},
    accepted=_GENERATION_ACCEPTED,
    refused={**_GENERATION_REFUSED, "suffix": ("",), "prompt_embeds": ()},
    acting=_GENERATION_ACTING,
)

TOKENIZE = Parameters(
    served=frozenset(
        {
            "model",
            "text",
            "prompt",
            "messages",
            "add_special_tokens",
            "return_token_strs",
            "max_length",
            "pad_to_max_length",
            "padding_side",
            *PROMPT_PARAMETERS,
        }
    ),
    refused=_PROMPT_REFUSED,
)

DETOKENIZE = Parameters(served=frozenset({"model", "tokens"}))


def _same(value: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are the same JSON: in Python true equals 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _shown(value: JsonValue) -> str:
    """Return a value as the caller would write it."""
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
