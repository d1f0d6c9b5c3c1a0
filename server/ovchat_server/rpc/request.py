"""From a request message to the domain, by way of OpenAI's request object.

The rules live in `domain`, once for both doors; here only the shapes differ. Only the text of a
structural tag may hold unknown keys, and no header names them here: they are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ovchat.v1 import (
    chat_pb2,
    completion_pb2,
    embedding_service_pb2,
    format_pb2,
    message_pb2,
    rerank_service_pb2,
    tokenizer_service_pb2,
    tool_pb2,
)
from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.embedding_request import read_embedding_request
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.limits import DEFAULT_LIMITS, too_many_parts
from ovchat_server.domain.rerank_request import read_rerank_request, read_score_request
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.domain.tokenization_request import read_tokenize_request
from ovchat_server.rpc.contract_paths import contract_paths
from ovchat_server.rpc.message_fields import enum_name, message_fields, which

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.embeddings import EmbeddingRequest
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.rerank import RerankRequest, ScoreRequest
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.domain.tokenization import TokenizeRequest
    from ovchat_server.rpc.message_fields import Converters


def chat_request(
    request: chat_pb2.CreateChatCompletionRequest, *, stream: bool, limits: Limits = DEFAULT_LIMITS
) -> ChatRequest:
    """Read the chat request in a message.

    Raises:
        InvalidRequestError: With every fault found, and the contract's paths.
    """
    fields = _prompt_fields(request, limits)
    if request.HasField("prediction"):
        fields["prediction"] = {"type": "content", "content": request.prediction}
    with contract_paths(request):
        return read_chat_request({**fields, "stream": stream}, strict=True, limits=limits)


def text_request(
    request: completion_pb2.CreateCompletionRequest,
    *,
    stream: bool,
    limits: Limits = DEFAULT_LIMITS,
) -> TextRequest:
    """Read the text completion request in a message.

    Raises:
        InvalidRequestError: With every fault found, and the contract's paths.
    """
    fields = _fields(request, FieldPath())
    with contract_paths(request):
        return read_text_request({**fields, "stream": stream}, strict=True, limits=limits)


def tokenize_request(
    request: tokenizer_service_pb2.TokenizeRequest, limits: Limits = DEFAULT_LIMITS
) -> TokenizeRequest:
    """Read the tokenize request in a message.

    Raises:
        InvalidRequestError: With every fault found, and the contract's paths.
    """
    fields = _prompt_fields(request, limits)
    with contract_paths(request):
        return read_tokenize_request(fields, limits=limits)


def embedding_request(
    request: embedding_service_pb2.CreateEmbeddingsRequest, limits: Limits = DEFAULT_LIMITS
) -> EmbeddingRequest:
    """Read the request for embeddings in a message.

    Raises:
        InvalidRequestError: With every fault found, and the contract's paths.
    """
    fields = _fields(request, FieldPath())
    with contract_paths(request):
        return read_embedding_request(fields, strict=True, limits=limits)


def rerank_request(
    request: rerank_service_pb2.RerankRequest, limits: Limits = DEFAULT_LIMITS
) -> RerankRequest:
    """Read the request to rank documents in a message.

    Raises:
        InvalidRequestError: With every fault found, and the contract's paths.
    """
    fields = _fields(request, FieldPath())
    with contract_paths(request):
        return read_rerank_request(fields, strict=True, limits=limits)


def score_request(
    request: rerank_service_pb2.ScoreRequest, limits: Limits = DEFAULT_LIMITS
) -> ScoreRequest:
    """Read the request to score pairs of texts in a message.

    Raises:
        InvalidRequestError: With every fault found, and the contract's paths.
    """
    fields = _fields(request, FieldPath())
    with contract_paths(request):
        return read_score_request(fields, strict=True, limits=limits)


def _prompt_fields(
    request: chat_pb2.CreateChatCompletionRequest | tokenizer_service_pb2.TokenizeRequest,
    limits: Limits,
) -> JsonObject:
    """Return the set fields of a request that a chat template is rendered for."""
    # Before each of them becomes a mapping.
    parts = sum(len(message.content) + len(message.tool_calls) for message in request.messages)
    if complaint := too_many_parts(parts, limits):
        raise InvalidRequestError.about("messages", f"{complaint}.")
    return _fields(request, FieldPath())


def _fields(message: Message, path: FieldPath) -> JsonObject:
    return message_fields(message, path, _CONVERTERS)


def _content_part(part: message_pb2.ContentPart, path: FieldPath) -> JsonObject:
    return {"type": which(part, "part", path), **_fields(part, path)}


def _image(image: message_pb2.Image, path: FieldPath) -> JsonObject:
    # The bytes as they are; there even if they are empty, which tells that the caller sent some.
    empty: Any = b""
    return {"data": empty, **_fields(image, path)}


def _prompt(prompt: completion_pb2.Prompt, path: FieldPath) -> JsonValue:
    if which(prompt, "prompt", path) == "text":
        return prompt.text
    return list(prompt.token_ids.values)


def _tool(tool: tool_pb2.Tool, path: FieldPath) -> JsonObject:
    return {"type": which(tool, "tool", path), **_fields(tool, path)}


def _tool_choice(choice: tool_pb2.ToolChoice, path: FieldPath) -> JsonValue:
    match which(choice, "choice", path):
        case "mode":
            return enum_name(tool_pb2.ToolChoiceMode.DESCRIPTOR, choice.mode)
        case "function_name":
            return {"type": "function", "function": {"name": choice.function_name}}
    allowed = choice.allowed_tools
    return {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": enum_name(tool_pb2.ToolChoiceMode.DESCRIPTOR, allowed.mode),
            "tools": [
                {"type": "function", "function": {"name": name}} for name in allowed.function_names
            ],
        },
    }


def _response_format(wanted: format_pb2.ResponseFormat, path: FieldPath) -> JsonObject:
    kind = which(wanted, "format", path)
    described = _fields(wanted, path)[kind]
    match kind:
        case "json_schema":
            return {"type": kind, kind: described}
        case "structural_tag" if isinstance(described, dict):
            # It says its type itself.
            return described
    # Text and any JSON have nothing to say beyond their type; what is no tag has no format.
    return {"type": kind}


def structured_outputs(outputs: format_pb2.StructuredOutputs, path: FieldPath) -> JsonObject:
    """Return vLLM's object; see Converters."""
    if which(outputs, "constraint", path) == "choice":
        return {"choice": list(outputs.choice.values)}
    return _fields(outputs, path)


_CONVERTERS: Converters = {
    message_pb2.ContentPart.DESCRIPTOR.full_name: _content_part,
    message_pb2.Image.DESCRIPTOR.full_name: _image,
    completion_pb2.Prompt.DESCRIPTOR.full_name: _prompt,
    tool_pb2.Tool.DESCRIPTOR.full_name: _tool,
    tool_pb2.ToolChoice.DESCRIPTOR.full_name: _tool_choice,
    format_pb2.ResponseFormat.DESCRIPTOR.full_name: _response_format,
    format_pb2.StructuredOutputs.DESCRIPTOR.full_name: structured_outputs,
}
