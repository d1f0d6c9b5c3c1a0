"""Writing what chats and text completions have in common as fields of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from ovchat.v1 import chat_pb2, format_pb2
from ovchat_server.domain.structured_output import ConstraintKind
from ovchat_server.providers import vllm_parameters
from ovchat_server.providers.openai.parameters import add_generation

if TYPE_CHECKING:
    from ovchat_server.domain.generation import GenerationParams, StreamOptions
    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.structured_output import Constraint
    from ovchat_server.providers.body import Body


class FormFields(TypedDict, total=False):
    """The fields that say what form the answer must have."""

    response_format: format_pb2.ResponseFormat
    structured_outputs: format_pb2.StructuredOutputs


def json_text(value: JsonValue) -> str:
    """Return JSON as text, the keys of its objects in their order."""
    return msgspec.json.encode(value).decode()


def generation_fields(body: Body, generation: GenerationParams) -> dict[str, Any]:
    """Return the fields of a request that are numbers, texts and lists of them.

    Args:
        body: Has those that the endpoint calls by a name of its own.
        generation: How to generate.

    Raises:
        InvalidRequestError: Something was refused.
    """
    add_generation(body, generation)
    body.add(vllm_parameters.of_speculation(generation.speculation))
    # The names are OpenAI's and vLLM's; JSON alone has no keys that are numbers.
    return {**body.request("").body, "logit_bias": dict(generation.sampling.logit_bias)}


def stream(options: StreamOptions | None) -> chat_pb2.StreamOptions | None:
    """Return the options of a stream, with its usage whether the caller sees it or not."""
    if options is None:
        return None
    continuous = options.continuous_usage or None
    return chat_pb2.StreamOptions(include_usage=True, continuous_usage_stats=continuous)


def form(constraint: Constraint | None) -> FormFields:
    """Return what form the answer must have, by the field that the caller used, if it is known."""
    if constraint is None:
        return {}
    if constraint.field.steps[:1] == ("response_format",) or constraint.described is not None:
        return {"response_format": _format(constraint)}
    return {"structured_outputs": _outputs(constraint)}


def _format(constraint: Constraint) -> format_pb2.ResponseFormat:
    value = constraint.value
    match constraint.kind:
        case ConstraintKind.JSON_OBJECT:
            return format_pb2.ResponseFormat(json_object=format_pb2.JsonObjectFormat())
        case ConstraintKind.JSON_SCHEMA:
            described: dict[str, Any] = constraint.described or {}
            schema = format_pb2.JsonSchemaFormat(**described, schema=json_text(value))
            return format_pb2.ResponseFormat(json_schema=schema)
    return format_pb2.ResponseFormat(structural_tag=_tag(value))


def _outputs(constraint: Constraint) -> format_pb2.StructuredOutputs:
    value: Any = constraint.value
    match constraint.kind:
        case ConstraintKind.JSON_OBJECT:
            return format_pb2.StructuredOutputs(json_object=True)
        case ConstraintKind.JSON_SCHEMA:
            return format_pb2.StructuredOutputs(json=json_text(value))
        case ConstraintKind.REGEX:
            return format_pb2.StructuredOutputs(regex=value)
        case ConstraintKind.CHOICE:
            return format_pb2.StructuredOutputs(choice=format_pb2.StringList(values=value))
        case ConstraintKind.GRAMMAR:
            return format_pb2.StructuredOutputs(grammar=value)
    return format_pb2.StructuredOutputs(structural_tag=_tag(value))


def _tag(form: JsonValue) -> str:
    return json_text({"type": "structural_tag", "format": form})
