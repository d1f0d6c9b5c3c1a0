"""Reading the parameters that chat and text completions have in common."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.domain.generation import (
    MAX_ASSISTANT_TOKENS,
    MAX_NGRAM_SIZE,
    BeamSearch,
    Ending,
    GenerationParams,
    SamplingParams,
    SpeculationParams,
    StreamOptions,
    Truncation,
    TruncationSide,
)
from ovchat_server.domain.logits_request import (
    read_allowed_tokens,
    read_bad_words,
    read_logit_bias,
    read_penalty,
)
from ovchat_server.domain.structured_output import read_constraint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.reader import Reader

MAX_UINT32 = 2**32 - 1
MIN_INT32, MAX_INT32 = -(2**31), 2**31 - 1
STREAM_OPTIONS = frozenset({"include_usage", "continuous_usage_stats", "include_obfuscation"})
# OVMS's default for best_of_limit.
MAX_BEAMS = 20
# OpenAI's for chats, and vLLM's for both.
MAX_TOP_LOGPROBS = 20
# Beyond it nothing changes any more.
MIN_REPETITION_PENALTY = 0.01
MAX_REPETITION_PENALTY = 100
# The engine divides by the length to this power, in float32: more than 2**126 would overflow
# at 2**18 tokens, and then the beams no longer come in the order that was asked for.
MAX_LENGTH_PENALTY = 7
WITH_BEAMS = "is not supported with beam search"


def read_generation(
    reader: Reader,
    *,
    max_tokens_fields: Sequence[str] = ("max_tokens",),
    default_max_tokens: int | None = None,
    min_max_tokens: int = 1,
) -> GenerationParams:
    """Read how to generate, but for log probabilities; note what is wrong in the reader.

    Args:
        reader: The request.
        max_tokens_fields: The names of the limit; the last that is set wins.
        default_max_tokens: What its absence means.
        min_max_tokens: The smallest limit.
    """
    field, max_tokens = FieldPath.of(max_tokens_fields[0]), None
    for name in max_tokens_fields:
        given = reader.integer(name, min_max_tokens, MAX_UINT32)
        if given is not None:
            field, max_tokens = FieldPath.of(name), given
    ending = _read_ending(reader, field, default_max_tokens if max_tokens is None else max_tokens)
    n = reader.integer("n", 1, reader.limits.max_choices) or 1
    sampling = _read_sampling(reader)
    beams = _read_beams(reader, n, sampling)
    constraint = read_constraint(reader)
    if constraint:
        refuse_with_constraint(reader, constraint.field, beams)
    if beams and beams.width == 1:
        # It takes the likeliest token every time.
        sampling, beams = dataclasses.replace(sampling, temperature=0.0), None
    return GenerationParams(
        sampling=sampling,
        ending=ending,
        n=n,
        beams=beams,
        prompt_logprobs=_read_prompt_logprobs(reader, beams),
        skip_special_tokens=reader.boolean("skip_special_tokens") is not False,
        truncation=read_truncation(reader, TruncationSide.LEFT),
        constraint=constraint,
        priority=reader.integer("priority", MIN_INT32, MAX_INT32) or 0,
        speculation=_read_speculation(reader),
        cache_salt=_read_cache_salt(reader),
    )


def _read_cache_salt(reader: Reader) -> str | None:
    salt = reader.string("cache_salt")
    if salt == "":
        # As vLLM: it would keep nothing from anybody.
        reader.refuse("cache_salt", "must not be empty")
    return salt


def read_stream_options(reader: Reader) -> StreamOptions | None:
    """Read what to stream; None where the whole answer is wanted at once."""
    stream = reader.boolean("stream")
    options = reader.object("stream_options", STREAM_OPTIONS)
    if options is None:
        return StreamOptions() if stream else None
    if not stream:
        reader.refuse("stream_options", "is only allowed if stream is true")
    include_usage = options.boolean("include_usage") or False
    continuous = options.boolean("continuous_usage_stats") or False
    # As vLLM: it says how often, not whether.
    read = StreamOptions(include_usage, continuous_usage=include_usage and continuous)
    return read if stream else None


def read_top_logprobs(reader: Reader, name: str, beams: BeamSearch | None) -> int | None:
    """Read how many alternatives to each token a field asks for; None where it is absent."""
    asked = reader.integer(name, 0, MAX_TOP_LOGPROBS)
    if asked and beams:
        reader.refuse(name, WITH_BEAMS, "unsupported_parameter")
    return asked


def read_truncation(reader: Reader, default: TruncationSide) -> Truncation | None:
    """Read how much of a prompt is kept; None where too much is refused.

    Args:
        reader: The request.
        default: The end that is cut unless the request names one.
    """
    side = reader.choice("truncation_side", [*TruncationSide])
    return read_truncation_at(reader, TruncationSide(side or default))


def read_truncation_at(reader: Reader, side: TruncationSide) -> Truncation | None:
    """Read how much of a prompt is kept, where requests cannot say at which end it is cut."""
    tokens = reader.integer("truncate_prompt_tokens", -1, MAX_UINT32)
    if tokens is None:
        return None
    if tokens == 0:
        reader.refuse("truncate_prompt_tokens", "must be -1 or at least 1, got 0")
    return Truncation(tokens=None if tokens == -1 else tokens, side=side)


def _read_prompt_logprobs(reader: Reader, beams: BeamSearch | None) -> int | None:
    asked = reader.integer("prompt_logprobs", 0, MAX_TOP_LOGPROBS)
    if asked is None:
        return None
    if beams:
        reader.refuse("prompt_logprobs", WITH_BEAMS, "unsupported_parameter")
    if reader.fields.get("stream") is True:
        # vLLM's words.
        complaint = "cannot be served: `prompt_logprobs` are not available when `stream=True`"
        reader.refuse("prompt_logprobs", complaint, "unsupported_parameter")
    return asked


def _read_sampling(reader: Reader) -> SamplingParams:
    return SamplingParams(
        temperature=reader.number("temperature", 0, 2),
        top_p=reader.number("top_p", 0, 1, above_minimum=True),
        top_k=reader.integer("top_k", -1, 2**31 - 1),
        min_p=reader.number("min_p", 0, 1, below_maximum=True),
        repetition_penalty=reader.number(
            "repetition_penalty", MIN_REPETITION_PENALTY, MAX_REPETITION_PENALTY
        ),
        seed=reader.integer("seed", -(2**63), 2**63 - 1),
        presence_penalty=read_penalty(reader, "presence_penalty"),
        frequency_penalty=read_penalty(reader, "frequency_penalty"),
        logit_bias=read_logit_bias(reader),
        allowed_token_ids=read_allowed_tokens(reader),
        bad_words=read_bad_words(reader),
    )


def _read_speculation(reader: Reader) -> SpeculationParams:
    threshold = "assistant_confidence_threshold"
    if reader.present("num_assistant_tokens") and reader.present(threshold):
        # As OVMS: a draft model proposes so many, or as many as it is sure of.
        other = FieldPath.of("num_assistant_tokens")
        reader.refuse(threshold, ErrorText.of("cannot be combined with ", other))
    return SpeculationParams(
        num_assistant_tokens=reader.integer("num_assistant_tokens", 0, MAX_ASSISTANT_TOKENS),
        max_ngram_size=reader.integer("max_ngram_size", 1, MAX_NGRAM_SIZE),
        assistant_confidence_threshold=reader.number(threshold, 0, 1),
    )


def _read_ending(reader: Reader, field: FieldPath, max_tokens: int | None) -> Ending:
    min_tokens = reader.integer("min_tokens", 0, MAX_UINT32) or 0
    if max_tokens is not None and min_tokens > max_tokens:
        complaint = ErrorText.of("must not be more than ", field, f", which is {max_tokens}")
        reader.refuse("min_tokens", complaint)
    return Ending(
        max_tokens=max_tokens,
        max_tokens_field=field,
        min_tokens=min_tokens,
        ignore_eos=reader.boolean("ignore_eos") or False,
        stop=_read_stop(reader),
        stop_token_ids=reader.integers(
            "stop_token_ids", 0, MAX_UINT32, max_items=reader.limits.max_stop_tokens
        ),
        include_stop=reader.boolean("include_stop_str_in_output") or False,
    )


def _read_stop(reader: Reader) -> tuple[str, ...]:
    value = reader.fields.get("stop")
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        reader.refuse("stop", "must be a string or an array of strings", "invalid_type")
        return ()
    if not reader.limit("stop", value, reader.limits.max_stop_strings, "strings"):
        return ()
    strings = []
    for index, item in enumerate(value):
        single = isinstance(reader.fields["stop"], str)
        field = FieldPath.of("stop") if single else FieldPath.of("stop", index)
        if not isinstance(item, str):
            reader.refuse(field, "must be a string", "invalid_type")
        elif not item:
            reader.refuse(field, "must not be empty")
        else:
            strings.append(item)
    return tuple(strings)


def _read_beams(reader: Reader, n: int, sampling: SamplingParams) -> BeamSearch | None:
    """Read beam search, as OVMS (best_of) and vLLM (use_beam_search) ask for it."""
    best_of = reader.integer("best_of", 1, MAX_BEAMS)
    asked = reader.boolean("use_beam_search")
    length_penalty = reader.number("length_penalty", -MAX_LENGTH_PENALTY, MAX_LENGTH_PENALTY)
    width = n if best_of is None else best_of
    if width < n:
        reader.refuse("best_of", f"must be at least n, which is {n}")
    elif asked and width > MAX_BEAMS:
        reader.refuse("n", f"must be at most {MAX_BEAMS} with beam search")
    elif asked or (width > 1 and best_of is not None):
        if asked is False:
            reader.refuse("use_beam_search", "must not be false where best_of is more than 1")
        if width > 1:
            _refuse_with_beams(reader, sampling)
        return BeamSearch(
            width,
            1.0 if length_penalty is None else length_penalty,
            field=FieldPath.of("n" if best_of is None else "best_of"),
        )
    return None


def _refuse_with_beams(reader: Reader, sampling: SamplingParams) -> None:
    """Refuse what the engine's beam search ignores; it takes no samples anyway."""
    for name, neutral in (("min_tokens", 0), ("ignore_eos", False), ("repetition_penalty", 1)):
        if reader.present(name) and reader.fields[name] != neutral:
            reader.refuse(name, WITH_BEAMS, "unsupported_parameter")
    for name in sampling.logit_changes():
        reader.refuse(name, WITH_BEAMS, "unsupported_parameter")


def refuse_with_constraint(reader: Reader, field: FieldPath, beams: BeamSearch | None) -> None:
    """Refuse what the engine gets wrong with a grammar, which `field` asks for.

    It would give up the form, or the end of the answer.
    """
    complaint = ErrorText.of("is not supported with ", field)
    if reader.fields.get("ignore_eos") is True:
        reader.refuse("ignore_eos", complaint, "unsupported_parameter")
    if reader.fields.get("min_tokens") not in (None, 0):
        reader.refuse("min_tokens", complaint, "unsupported_parameter")
    if beams:
        name = "best_of" if reader.present("best_of") else "use_beam_search"
        reader.refuse(name, complaint, "unsupported_parameter")
