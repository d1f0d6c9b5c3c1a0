"""From untrusted fields to a text completion request: the rules, the same for both doors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation_request import (
    WITH_BEAMS,
    read_generation,
    read_stream_options,
    read_top_logprobs,
)
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.parameters import TEXT
from ovchat_server.domain.reader import Reader
from ovchat_server.domain.text import TextRequest
from ovchat_server.domain.texts_or_tokens import read_texts_or_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.text import TextPrompt

# OpenAI's and vLLM's.
DEFAULT_MAX_TOKENS = 16
# All of them are generated at once.
MAX_TEXT_CHOICES = 1024


def read_text_request(
    fields: Mapping[str, JsonValue], *, strict: bool = False, limits: Limits = DEFAULT_LIMITS
) -> TextRequest:
    """Read a text completion request.

    Args:
        fields: OpenAI's request object, from JSON or from the set fields of a message.
        strict: Refuse unknown fields instead of ignoring them.
        limits: How much it may hold.

    Raises:
        InvalidRequestError: With every fault found.
    """
    reader = Reader.of_request(fields, limits)
    echo = reader.boolean("echo") or False
    prompts = _read_prompts(reader)
    generation = read_generation(
        reader,
        default_max_tokens=DEFAULT_MAX_TOKENS,
        # Nothing but the prompt, echoed: of use with its log probabilities.
        min_max_tokens=0 if echo else 1,
    )
    if len(prompts) * generation.n > MAX_TEXT_CHOICES:
        reader.refuse(
            "n", f"must be smaller: a request may have at most {MAX_TEXT_CHOICES} choices"
        )
    request = TextRequest(
        model=reader.string("model") or "",
        prompts=tuple(prompts.values()),
        prompt_fields=tuple(prompts),
        generation=_read_logprobs(reader, generation, echo=echo),
        special_tokens=reader.boolean("add_special_tokens") is not False,
        echo=echo,
        return_token_ids=reader.boolean("return_token_ids") or False,
        stream=read_stream_options(reader),
        ignored=TEXT.check(reader, strict=strict),
        accepted=TEXT.accepted_in(reader),
    )
    return reader.checked(request)


def _read_logprobs(reader: Reader, generation: GenerationParams, *, echo: bool) -> GenerationParams:
    alternatives = read_top_logprobs(reader, "logprobs", generation.beams)
    if echo and alternatives == 0 and generation.beams:
        reader.refuse("logprobs", f"{WITH_BEAMS} and echo", "unsupported_parameter")
    return dataclasses.replace(
        generation,
        logprobs=alternatives is not None,
        top_logprobs=alternatives or 0,
        top_logprobs_field=FieldPath.of("logprobs"),
        echo_logprobs=echo and alternatives is not None,
    )


def _read_prompts(reader: Reader) -> dict[FieldPath, TextPrompt]:
    """Read a string, tokens, or a list of either (OpenAI's union), each by its path."""
    # Many begin with the other API's field.
    elsewhere = ": messages are for chat completions, at /v3/chat/completions"
    if not reader.require("prompt", elsewhere if reader.present("messages") else ""):
        return {}
    return read_texts_or_tokens(reader, "prompt", reader.limits.max_prompts, "prompts")
