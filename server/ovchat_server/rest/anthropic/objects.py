"""The objects of the Messages API: messages, the blocks of their content, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_core import from_json

from ovchat_server.domain.anthropic.signatures import hiding_signature, shown_signature
from ovchat_server.domain.blocks import BlockKind
from ovchat_server.domain.completion import FinishReason
from ovchat_server.domain.errors import ProviderError
from ovchat_server.telemetry.logs import request_id

if TYPE_CHECKING:
    from ovchat_server.domain.anthropic.request import MessagesRequest
    from ovchat_server.domain.blocks import Block
    from ovchat_server.domain.completion import (
        Choice,
        ChunkChoice,
        Completion,
        CompletionInfo,
        Usage,
    )
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.json_value import JsonObject, JsonValue

# What ids of calls begin with: OpenAI's prefix, which ours have, and Anthropic's.
CALL, TOOL_USE = "call_", "toolu_"
# By the gRPC status.
ERROR_TYPES = {
    "INVALID_ARGUMENT": "invalid_request_error",
    "UNAUTHENTICATED": "authentication_error",
    "NOT_FOUND": "not_found_error",
    "RESOURCE_EXHAUSTED": "rate_limit_error",
    "UNAVAILABLE": "overloaded_error",
    "DEADLINE_EXCEEDED": "timeout_error",
}
SERVER_ERROR = "api_error"
# For clients that would have the server keep the conversation, such as the SDKs' tool runners: they
# send it whole, then. Without it they end.
NO_THREADS: JsonObject = {"error_code": "thread_unsupported_request"}
# Where the status is not the one that other APIs have, too.
HTTP_STATUSES = {"overloaded_error": 529}


def message(request: MessagesRequest, completion: Completion) -> JsonObject:
    """Return a whole message."""
    choice = completion.choices[0]
    content: list[JsonValue] = [whole_block(request, block) for block in choice.blocks]
    stopped = stop(request, choice, completion.usage)
    return _message(completion.info, content, stopped, completion.usage)


def begun_message(info: CompletionInfo, usage: Usage) -> JsonObject:
    """Return a message without content; `usage` is what is known of it."""
    return _message(info, [], _stop(None), usage)


def whole_block(request: MessagesRequest, block: Block) -> JsonObject:
    """Return a block of the content."""
    begun = begun_block(block)
    match block.kind:
        case BlockKind.TEXT:
            return {**begun, "text": block.text}
        case BlockKind.REASONING:
            thinking = block.text if request.shows_thinking else ""
            return {**begun, "thinking": thinking, "signature": signature(request, block.text)}
        case BlockKind.CALL:
            return {**begun, "input": _input(block.text)}


def begun_block(block: Block) -> JsonObject:
    """Return a block as it begins, without its text."""
    match block.kind:
        case BlockKind.TEXT:
            return {"type": "text", "text": "", "citations": None}
        case BlockKind.REASONING:
            return {"type": "thinking", "thinking": "", "signature": ""}
        case BlockKind.CALL:
            call_id = block.call_id
            if call_id.startswith(CALL):
                call_id = TOOL_USE + call_id.removeprefix(CALL)
            return {"type": "tool_use", "id": call_id, "name": block.name, "input": {}}


def signature(request: MessagesRequest, thinking: str) -> str:
    """Return the signature of a whole text of thinking."""
    return shown_signature(thinking) if request.shows_thinking else hiding_signature(thinking)


def stop(request: MessagesRequest, choice: Choice | ChunkChoice, usage: Usage) -> JsonObject:
    """Return the fields that say why a message ended.

    Args:
        request: What it answers.
        choice: The answer, or its last chunk.
        usage: That of the whole.
    """
    ending = request.chat.generation.ending
    match choice.finish_reason:
        case FinishReason.TOOL_CALLS:
            return _stop("tool_use")
        case FinishReason.CONTENT_FILTER:
            return _stop("refusal")
        case FinishReason.LENGTH:
            # Where it has fewer tokens than it might have, there was no room for more. Of 0 tokens
            # nobody told.
            full = 0 < usage.completion_tokens < (ending.max_tokens or 0)
            return _stop("model_context_window_exceeded" if full else "max_tokens")
    if isinstance(choice.stop_reason, str) and choice.stop_reason in ending.stop:
        return _stop("stop_sequence", choice.stop_reason)
    return _stop("end_turn")


def usage_object(usage: Usage) -> JsonObject:
    """Return how many tokens a message took; of those of the prompt, each is counted once."""
    cached = usage.cached_tokens or 0
    fields: JsonObject = {
        "input_tokens": usage.prompt_tokens - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.completion_tokens,
    }
    if usage.reasoning_tokens is not None:
        fields["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return fields


def input_tokens(count: int) -> JsonObject:
    """Return what says how many tokens a prompt has."""
    return {"input_tokens": count}


def error(problem: ApiError) -> JsonObject:
    """Return Anthropic's error object, which is an event, too."""
    told: JsonObject = {"type": _error_type(problem), "message": problem.message}
    if any(violation.field == "thread" for violation in problem.violations):
        told["details"] = NO_THREADS
    return {
        "type": "error",
        "error": told,
        "request_id": request_id.get() or None,
    }


def http_status(problem: ApiError) -> int | None:
    """Return the HTTP status of an error; see RestError."""
    return HTTP_STATUSES.get(_error_type(problem), problem.http_status)


def _message(
    info: CompletionInfo, content: list[JsonValue], stopped: JsonObject, usage: Usage
) -> JsonObject:
    return {
        "id": info.id,
        "type": "message",
        "role": "assistant",
        "model": info.model,
        "content": content,
        **stopped,
        "usage": usage_object(usage),
    }


def _stop(reason: str | None, sequence: str | None = None) -> JsonObject:
    return {"stop_reason": reason, "stop_sequence": sequence, "stop_details": None}


def _input(arguments: str) -> JsonObject:
    """Return arguments as an object: of those that were cut what is whole, as the SDKs read it."""
    try:
        value = from_json(arguments, allow_partial=True)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _error_type(problem: ApiError) -> str:
    if isinstance(problem, ProviderError):
        return SERVER_ERROR
    return ERROR_TYPES.get(problem.status, SERVER_ERROR)
