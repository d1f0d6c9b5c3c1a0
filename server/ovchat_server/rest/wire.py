"""OpenAI's JSON: from the domain to objects, key by key as its SDKs expect them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.api.chat import Message
    from ovchat_server.api.completion import (
        ChatChunk,
        ChatCompletion,
        Choice,
        ChunkChoice,
        CompletionInfo,
        Delta,
        ToolCallDelta,
        Usage,
    )
    from ovchat_server.api.errors import ApiError
    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.api.models import ModelStatus


def chat_completion(completion: ChatCompletion) -> JsonObject:
    """A whole answer."""
    return {
        **_info(completion.info, "chat.completion"),
        "choices": [_choice(choice) for choice in completion.choices],
        "usage": _usage(completion.usage),
    }


def chat_chunk(chunk: ChatChunk, *, include_usage: bool) -> JsonObject:
    """A part of an answer; where usage was asked for, every chunk has the key."""
    fields: JsonObject = {
        **_info(chunk.info, "chat.completion.chunk"),
        "choices": [_chunk_choice(choice) for choice in chunk.choices],
    }
    if include_usage:
        fields["usage"] = None if chunk.usage is None else _usage(chunk.usage)
    return fields


def model(status: ModelStatus) -> JsonObject:
    """A model; the context length under vLLM's name, too."""
    return {
        "id": status.id,
        "object": "model",
        "created": status.created,
        "owned_by": "ovchat",
        "max_model_len": status.context_length or None,
        "context_length": status.context_length or None,
        "capabilities": [str(capability) for capability in status.capabilities],
        "type": status.type,
        "provider": status.provider,
        "state": str(status.state),
    }


def error(problem: ApiError) -> JsonObject:
    """OpenAI's error object."""
    return {
        "error": {
            "message": problem.message,
            "type": problem.type,
            "param": problem.param,
            "code": problem.code,
        }
    }


def _info(info: CompletionInfo, kind: str) -> JsonObject:
    return {
        "id": info.id,
        "object": kind,
        "created": info.created,
        "model": info.model,
        "system_fingerprint": info.system_fingerprint,
    }


def _choice(choice: Choice) -> JsonObject:
    return {
        "index": choice.index,
        "message": _message(choice.message),
        "logprobs": None,
        "finish_reason": choice.finish_reason,
        "stop_reason": choice.stop_reason,
    }


def _message(message: Message) -> JsonObject:
    fields: JsonObject = {
        "role": message.role,
        "content": message.content,
        "refusal": None,
    }
    if message.reasoning_content is not None:
        fields["reasoning_content"] = message.reasoning_content
    if message.tool_calls:
        fields["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    return fields


def _chunk_choice(choice: ChunkChoice) -> JsonObject:
    fields: JsonObject = {
        "index": choice.index,
        "delta": _delta(choice.delta),
        "logprobs": None,
        "finish_reason": choice.finish_reason,
    }
    if choice.finish_reason is not None:
        fields["stop_reason"] = choice.stop_reason
    return fields


def _delta(delta: Delta) -> JsonObject:
    fields: JsonObject = {}
    if delta.role is not None:
        # OVMS's first chunk, by which its callers measure their TTFT.
        fields = {"role": delta.role, "content": None}
    if delta.content is not None:
        fields["content"] = delta.content
    if delta.reasoning_content is not None:
        fields["reasoning_content"] = delta.reasoning_content
    if delta.tool_calls:
        fields["tool_calls"] = [_tool_call_delta(call) for call in delta.tool_calls]
    return fields


def _tool_call_delta(call: ToolCallDelta) -> JsonObject:
    # The SDKs append strings, so what was said once must not come again.
    fields: JsonObject = {"index": call.index}
    function: JsonObject = {}
    if call.id is not None:
        fields |= {"id": call.id, "type": "function"}
    if call.name is not None:
        function["name"] = call.name
    if call.arguments is not None:
        function["arguments"] = call.arguments
    return {**fields, "function": function}


def _usage(usage: Usage) -> JsonObject:
    fields: JsonObject = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    if usage.reasoning_tokens is not None:
        fields["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return fields
