"""Writing how to generate, and what form the answer must have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.structured_output import ConstraintKind
from ovchat_server.providers import vllm_parameters

if TYPE_CHECKING:
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.structured_output import Constraint
    from ovchat_server.providers.body import Body

MAX_TEMPERATURE = 1
EFFORTS = ("low", "medium", "high", "xhigh", "max")
NO_EFFORT = "none"
# The smallest number of tokens of thinking.
MIN_BUDGET = 1024


def add_generation(body: Body, generation: GenerationParams, default_max_tokens: int) -> None:
    """Add how to generate; see `add_chat`."""
    sampling, ending = generation.sampling, generation.ending
    top_k = sampling.top_k if sampling.top_k and sampling.top_k > 0 else None
    body.add(
        {
            "max_tokens": default_max_tokens if ending.max_tokens is None else ending.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": top_k,
            "stop_sequences": list(ending.stop) or None,
        }
    )
    if sampling.temperature is not None and sampling.temperature > MAX_TEMPERATURE:
        complaint = f"must be at most {MAX_TEMPERATURE} to be understood"
        body.refuse("temperature", complaint, "unsupported_value")
    body.refuse_all(_openai(generation))
    body.refuse_all({**vllm_parameters.of_generation(generation), "top_k": None})
    if generation.beams:
        asked_by = vllm_parameters.beams_field(generation.beams)
        body.refuse_all(vllm_parameters.of_beams(generation.beams), asked_by)
    body.ignore(vllm_parameters.of_speculation(generation.speculation))
    body.ignore({"prediction": generation.speculation.prediction or None})


def add_output(body: Body, request: ChatRequest) -> None:
    """Add how much effort the model is to make, and what form the answer must have."""
    effort, constraint = request.reasoning_effort, request.generation.constraint
    output: JsonObject = {}
    if effort in EFFORTS:
        output["effort"] = effort
    elif effort not in (None, NO_EFFORT):
        known = ", ".join((NO_EFFORT, *EFFORTS))
        complaint = f"must be one of {known} to be understood"
        body.refuse("reasoning_effort", complaint, "unsupported_value")
    body.add({"thinking": _thinking(body, request)})
    if constraint is not None:
        if constraint.kind is ConstraintKind.JSON_SCHEMA:
            output["format"] = {"type": "json_schema", "schema": _schema(constraint)}
        else:
            body.refuse(constraint.field)
    body.add({"output_config": output or None})


def _thinking(body: Body, request: ChatRequest) -> JsonObject | None:
    effort, budget = request.reasoning_effort, request.thinking_budget
    if effort == NO_EFFORT or budget == 0 or request.thinking is False:
        return {"type": "disabled"}
    # Some models do not think unless they are told to, and newer ones do not show it.
    display = "summarized" if request.include_reasoning else "omitted"
    if budget is not None:
        if budget < MIN_BUDGET:
            complaint = f"must be 0 or at least {MIN_BUDGET} to be understood"
            body.refuse("thinking_token_budget", complaint, "unsupported_value")
        return {"type": "enabled", "budget_tokens": budget, "display": display}
    # In Anthropic's API an effort alone asks for no thinking.
    if request.thinking or (effort in EFFORTS and request.thinks_by_itself):
        return {"type": "adaptive", "display": display}
    return None


def _openai(generation: GenerationParams) -> JsonObject:
    sampling = generation.sampling
    return {
        "n": generation.n if generation.n > 1 else None,
        "seed": sampling.seed,
        "presence_penalty": sampling.presence_penalty or None,
        "frequency_penalty": sampling.frequency_penalty or None,
        "logit_bias": True if sampling.biases else None,
        "logprobs": generation.logprobs or None,
        "top_logprobs": generation.top_logprobs or None,
    }


def _schema(constraint: Constraint) -> JsonObject:
    schema = constraint.value if isinstance(constraint.value, dict) else {}
    described = (constraint.described or {}).get("description")
    return schema if described is None else {"description": described, **schema}
