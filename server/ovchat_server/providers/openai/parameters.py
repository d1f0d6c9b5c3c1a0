"""The parameters that chats and text completions have in common, by their names on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.structured_output import ConstraintKind
from ovchat_server.providers import vllm_parameters

if TYPE_CHECKING:
    from ovchat_server.domain.generation import GenerationParams, StreamOptions
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.structured_output import Constraint
    from ovchat_server.providers.body import Body

# The forms that OpenAI's chats know.
JSON_FORMS = (ConstraintKind.JSON_OBJECT, ConstraintKind.JSON_SCHEMA)
# OpenAI's schemas need a name, and are enforced where that is asked for.
DESCRIPTION: JsonObject = {"name": "answer", "strict": True}


def add_generation(body: Body, generation: GenerationParams) -> None:
    """Add how to generate, but for what the endpoints call by different names."""
    body.add(_openai(generation))
    body.add_vllm(vllm_parameters.of_generation(generation))
    if generation.beams:
        asked_by = vllm_parameters.beams_field(generation.beams)
        body.add_vllm(vllm_parameters.of_beams(generation.beams), asked_by)
    body.ignore(vllm_parameters.of_speculation(generation.speculation))


def add_stream(body: Body, stream: StreamOptions | None) -> None:
    """Add that the answer is to be streamed, with its usage whether the caller sees it or not."""
    if stream is None:
        return
    options: JsonObject = {"include_usage": True}
    continuous = "continuous_usage_stats"
    if stream.continuous_usage and body.vllm_parameters:
        options[continuous] = True
    elif stream.continuous_usage:
        body.refuse(FieldPath.of("stream_options", continuous))
    body.add({"stream": True, "stream_options": options})


def add_form(body: Body, constraint: Constraint | None, *, chat: bool) -> None:
    """Add what form the answer must have. OpenAI's text completions know none."""
    if constraint is None:
        return
    if chat and constraint.kind in JSON_FORMS:
        body.add(_form(constraint))
    else:
        body.add_vllm(_form(constraint), constraint.field)


def _openai(generation: GenerationParams) -> JsonObject:
    sampling = generation.sampling
    return {
        "n": generation.n if generation.n > 1 else None,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "presence_penalty": sampling.presence_penalty or None,
        "frequency_penalty": sampling.frequency_penalty or None,
        "logit_bias": {str(token): bias for token, bias in sampling.logit_bias} or None,
        "stop": list(generation.ending.stop) or None,
    }


def _form(constraint: Constraint) -> JsonObject:
    kind, value = constraint.kind, constraint.value
    match kind:
        case ConstraintKind.JSON_OBJECT:
            return {"response_format": {"type": "json_object"}}
        case ConstraintKind.JSON_SCHEMA:
            described = DESCRIPTION
            if constraint.described is not None:
                described = {"name": DESCRIPTION["name"], **constraint.described}
            schema: JsonObject = {**described, "schema": value}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        case ConstraintKind.STRUCTURAL_TAG:
            # The only way that vLLM and OVMS have in common.
            return {"response_format": {"type": "structural_tag", "format": value}}
    return {"structured_outputs": {str(kind): value}}
