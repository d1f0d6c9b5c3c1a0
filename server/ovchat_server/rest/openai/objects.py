"""OpenAI's JSON objects, key by key as its SDKs expect them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.responses.logprobs import token_logprobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.chat import Message
    from ovchat_server.domain.completion import (
        Alternative,
        Choice,
        Chunk,
        ChunkChoice,
        Completion,
        CompletionInfo,
        Delta,
        PromptToken,
        TokenLogprob,
        ToolCallDelta,
        Usage,
    )
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.generation import StreamOptions
    from ovchat_server.domain.json_value import JsonObject, JsonValue


def chat_completion(completion: Completion) -> JsonObject:
    """Return a whole answer to a chat."""
    return {
        **_info(completion.info, "chat.completion"),
        "choices": [_choice(choice) for choice in completion.choices],
        "usage": _usage(completion.usage),
        "prompt_logprobs": _prompt_logprobs(completion.prompt_logprobs),
    }


def chat_chunk(chunk: Chunk, options: StreamOptions, opening: str | None = "") -> JsonObject:
    """Return a part of an answer to a chat.

    Args:
        chunk: The part.
        options: What the stream carries besides deltas.
        opening: The content of the first delta.
    """
    return {
        **_info(chunk.info, "chat.completion.chunk"),
        "choices": [_chunk_choice(choice, opening) for choice in chunk.choices],
        **_chunk_usage(chunk, options),
    }


def text_completion(completion: Completion) -> JsonObject:
    """Return a whole text completion."""
    return {
        **_info(completion.info, "text_completion"),
        "choices": [
            {
                **_text_choice(choice, choice.message.text, choice.logprobs),
                "prompt_logprobs": _prompt_logprobs(choice.prompt_logprobs),
            }
            for choice in completion.choices
        ],
        "usage": _usage(completion.usage),
    }


def text_chunk(chunk: Chunk, options: StreamOptions) -> JsonObject:
    """Return a part of a text completion: the same kind of object as the whole (OpenAI)."""
    return {
        **_info(chunk.info, "text_completion"),
        "choices": [
            _text_choice(choice, choice.delta.content or "", choice.logprobs)
            for choice in chunk.choices
        ],
        **_chunk_usage(chunk, options),
    }


def prompt_usage(tokens: int) -> JsonObject:
    """Return the usage of a request that generates nothing."""
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def error(problem: ApiError) -> JsonObject:
    """Return OpenAI's error object."""
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
        "logprobs": _logprobs(choice.logprobs),
        "finish_reason": choice.finish_reason,
        "stop_reason": choice.stop_reason,
    }


def _message(message: Message) -> JsonObject:
    fields: JsonObject = {
        "role": message.role,
        # As OpenAI: null where it only calls tools.
        "content": message.text or (None if message.tool_calls else ""),
        "refusal": None,
    }
    if message.reasoning_content is not None:
        fields |= _reasoning(message.reasoning_content)
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


def _chunk_choice(choice: ChunkChoice, opening: str | None) -> JsonObject:
    fields: JsonObject = {
        "index": choice.index,
        "delta": _delta(choice.delta, opening),
        "logprobs": _logprobs(choice.logprobs),
        "finish_reason": choice.finish_reason,
    }
    if choice.finish_reason is not None:
        fields["stop_reason"] = choice.stop_reason
    return fields


def _logprobs(logprobs: Sequence[TokenLogprob] | None) -> JsonObject | None:
    return None if logprobs is None else {"content": token_logprobs(logprobs), "refusal": None}


def _reasoning(text: str) -> JsonObject:
    """Return reasoning by both of its names: vLLM has renamed it, and clients read either."""
    return {"reasoning_content": text, "reasoning": text}


def _text_choice(
    choice: Choice | ChunkChoice, text: str, logprobs: Sequence[TokenLogprob] | None
) -> JsonObject:
    fields: JsonObject = {
        "index": choice.index,
        "text": text,
        "logprobs": _text_logprobs(logprobs),
        "finish_reason": choice.finish_reason,
        "stop_reason": choice.stop_reason,
    }
    if choice.token_ids is not None:
        fields["token_ids"] = list(choice.token_ids)
    if choice.prompt_token_ids is not None:
        fields["prompt_token_ids"] = list(choice.prompt_token_ids)
    return fields


def _prompt_logprobs(tokens: Sequence[PromptToken] | None) -> list[JsonValue] | None:
    """Return what whole answers have, asked for or not (vLLM)."""
    return None if tokens is None else [_prompt_token(item) for item in tokens]


def _prompt_token(token: PromptToken) -> JsonObject | None:
    """Return the token and the likeliest in its place by their ids (vLLM), each once."""
    if token.itself.logprob is None:
        return None
    return {
        str(item.id): {"logprob": item.logprob, "rank": item.rank, "decoded_token": item.text}
        for item in (token.itself, *token.likeliest)
    }


def _text_logprobs(logprobs: Sequence[TokenLogprob] | None) -> JsonObject | None:
    """Return the older form: a list for each kind of fact."""
    if logprobs is None:
        return None
    alternatives: list[JsonValue] = [_by_text(item.alternatives) or None for item in logprobs]
    return {
        "text_offset": [item.offset for item in logprobs],
        "token_logprobs": [item.logprob for item in logprobs],
        "tokens": [item.text for item in logprobs],
        "top_logprobs": alternatives,
    }


def _by_text(alternatives: Sequence[Alternative]) -> JsonObject:
    """Return log probabilities by text; of two tokens with the same one the likelier stays."""
    numbers: JsonObject = {}
    for item in alternatives:
        numbers.setdefault(item.text, item.logprob)
    return numbers


def _chunk_usage(chunk: Chunk, options: StreamOptions) -> JsonObject:
    """Return the usage: every chunk has the key where it was asked for."""
    if not options.include_usage:
        return {}
    return {"usage": None if chunk.usage is None else _usage(chunk.usage)}


def _delta(delta: Delta, opening: str | None) -> JsonObject:
    fields: JsonObject = {}
    if delta.role is not None:
        fields = {"role": delta.role, "content": opening}
    if delta.content is not None:
        fields["content"] = delta.content
    if delta.reasoning_content is not None:
        fields |= _reasoning(delta.reasoning_content)
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
    prompt: JsonObject = {}
    if usage.cached_tokens is not None:
        prompt["cached_tokens"] = usage.cached_tokens
    if usage.image_tokens:
        prompt["image_tokens"] = usage.image_tokens
    if prompt:
        fields["prompt_tokens_details"] = prompt
    completion: JsonObject = {}
    if usage.reasoning_tokens is not None:
        completion["reasoning_tokens"] = usage.reasoning_tokens
    if usage.accepted_tokens is not None:
        completion["accepted_prediction_tokens"] = usage.accepted_tokens
        completion["rejected_prediction_tokens"] = usage.rejected_tokens
    if completion:
        fields["completion_tokens_details"] = completion
    return fields
