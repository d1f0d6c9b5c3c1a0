"""OpenAI's JSON as the contract's messages: what a gRPC caller would write instead."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format

from ovchat.v1 import (
    chat_pb2,
    completion_pb2,
    embedding_service_pb2,
    rerank_service_pb2,
    tokenizer_service_pb2,
)
from ovchat_server.domain.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

KINDS: dict[str, type[Message]] = {
    "chat": chat_pb2.CreateChatCompletionRequest,
    "text": completion_pb2.CreateCompletionRequest,
    "tokenize": tokenizer_service_pb2.TokenizeRequest,
    "detokenize": tokenizer_service_pb2.DetokenizeRequest,
    "embeddings": embedding_service_pb2.CreateEmbeddingsRequest,
    "rerank": rerank_service_pb2.RerankRequest,
    "score": rerank_service_pb2.ScoreRequest,
}


def contract_names(endpoint: str) -> set[str]:
    """The fields of an endpoint's request message; none where the contract has no such."""
    return set(KINDS[endpoint].DESCRIPTOR.fields_by_name) if endpoint in KINDS else set()


def message(endpoint: str, fields: dict[str, Any]) -> Message:
    """The message that says what a REST body says; `stream` is another RPC, not a field.

    A value of a wrong type stays as it is, for ParseDict to refuse.
    """
    converters = {**CONVERTERS, **OF_ENDPOINTS.get(endpoint, {})}
    values = {
        name: converters[name](value) if name in converters and value is not None else value
        for name, value in fields.items()
        if name != "stream"
    }
    return json_format.ParseDict(values, KINDS[endpoint]())


def _prompts(value: Any) -> Any:
    if isinstance(value, list) and not (value and type(value[0]) is int):
        return [_prompt(item) for item in value]
    return [_prompt(value)]


def _prompt(value: Any) -> Any:
    if isinstance(value, str):
        return {"text": value}
    return {"token_ids": {"values": value}} if isinstance(value, list) else value


def _each(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: [convert(item) for item in value] if isinstance(value, list) else value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _json_text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict) else value


def _said(value: Any) -> Any:
    """A message of a conversation."""
    if not isinstance(value, dict):
        return value
    content = value.get("content")
    parts = [{"text": content}] if isinstance(content, str) else content
    if isinstance(parts, list):
        parts = [{key: item for key, item in part.items() if key != "type"} for part in parts]
    role = f"ROLE_{value['role'].upper()}"
    return {**value, "role": role, **({} if content is None else {"content": parts})}


def _tool(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    function = value["function"]
    return {"function": {**function, "parameters": json.dumps(function["parameters"])}}


def _tool_choice(value: Any) -> Any:
    if isinstance(value, str):
        return {"mode": f"TOOL_CHOICE_MODE_{value.upper()}"}
    return {"function_name": value["function"]["name"]} if isinstance(value, dict) else value


def _response_format(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "schema" in value:
        value = {"type": "json_schema", "json_schema": {"schema": value["schema"]}}
    match value.get("type"):
        case None:
            return {}
        case "text" | "json_object" as kind:
            return {kind: {}}
        case "json_schema":
            return {"json_schema": _with_json_text(value.get("json_schema", {}), "schema")}
        case "structural_tag":
            return {"structural_tag": json.dumps(value)}
    # A format by itself is the inside of a tag.
    return {"structural_tag": json.dumps({"type": "structural_tag", "format": value})}


def _structured_outputs(value: Any) -> Any:
    converted = _with_json_text(_with_json_text(value, "json"), "structural_tag")
    if isinstance(converted, dict) and "choice" in converted:
        converted = {**converted, "choice": {"values": converted["choice"]}}
    return converted


def _with_json_text(value: Any, name: str) -> Any:
    """An object whose item `name` is JSON as text."""
    if not isinstance(value, dict) or name not in value:
        return value
    return {**value, name: _json_text(value[name])}


def _prediction(value: Any) -> Any:
    match value:
        case {"type": "content", "content": str(text)}:
            return text
        case {"type": "content", "content": [*parts]} if len(parts) <= DEFAULT_LIMITS.max_parts:
            with contextlib.suppress(TypeError, KeyError):
                return "\n".join(part["text"] for part in parts)
    return value


def _input_type(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    word = value.removeprefix("search_").replace("passage", "document")
    return f"INPUT_TYPE_{word.upper()}"


def _document(value: Any) -> Any:
    return value.get("text", value) if isinstance(value, dict) else value


def _padding_side(value: Any) -> Any:
    return f"PADDING_SIDE_{value.upper()}" if isinstance(value, str) else value


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "messages": _each(_said),
    "stop": _listed,
    "text": _listed,
    "tools": _each(_tool),
    "tool_choice": _tool_choice,
    "chat_template_kwargs": _json_text,
    "documents": _each(_json_text),
    "response_format": _response_format,
    "structured_outputs": _structured_outputs,
    "prediction": _prediction,
    "padding_side": _padding_side,
}
# Where the same name is another type, or is no parameter of the others.
OF_ENDPOINTS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "text": {"prompt": _prompts},
    "embeddings": {"input": _prompts, "input_type": _input_type},
    "rerank": {"documents": _each(_document)},
    "score": {"queries": _listed, "documents": _listed},
}
