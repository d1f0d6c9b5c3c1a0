"""From the domain's answers to messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from ovchat.v1 import chat_pb2, completion_pb2, message_pb2
from ovchat_server.domain.chat import Role
from ovchat_server.domain.completion import FinishReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.chat import Message
    from ovchat_server.domain.completion import (
        Choice,
        Chunk,
        ChunkChoice,
        Completion,
        CompletionInfo,
        Delta,
        PromptToken,
        TokenLogprob,
        Usage,
    )

ROLES = {
    Role.SYSTEM: message_pb2.ROLE_SYSTEM,
    Role.DEVELOPER: message_pb2.ROLE_DEVELOPER,
    Role.USER: message_pb2.ROLE_USER,
    Role.ASSISTANT: message_pb2.ROLE_ASSISTANT,
    Role.TOOL: message_pb2.ROLE_TOOL,
}
FINISH_REASONS = {
    None: chat_pb2.FINISH_REASON_UNSPECIFIED,
    FinishReason.STOP: chat_pb2.FINISH_REASON_STOP,
    FinishReason.LENGTH: chat_pb2.FINISH_REASON_LENGTH,
    FinishReason.TOOL_CALLS: chat_pb2.FINISH_REASON_TOOL_CALLS,
    FinishReason.CONTENT_FILTER: chat_pb2.FINISH_REASON_CONTENT_FILTER,
}


class _Info(TypedDict):
    id: str
    created: int
    model: str
    system_fingerprint: str


class _StopReason(TypedDict, total=False):
    stop_reason: str
    stop_token_id: int


def chat_completion(completion: Completion) -> chat_pb2.ChatCompletion:
    """Return a whole answer to a chat."""
    return chat_pb2.ChatCompletion(
        **_info(completion.info),
        choices=[_choice(choice) for choice in completion.choices],
        usage=_usage(completion.usage),
        prompt_logprobs=_prompt_logprobs(completion.prompt_logprobs),
    )


def chat_chunk(chunk: Chunk) -> chat_pb2.ChatCompletionChunk:
    """Return a part of an answer to a chat."""
    return chat_pb2.ChatCompletionChunk(
        **_info(chunk.info),
        choices=[_chunk_choice(choice) for choice in chunk.choices],
        usage=None if chunk.usage is None else _usage(chunk.usage),
    )


def completion(completion: Completion) -> completion_pb2.Completion:
    """Return a whole text completion."""
    return completion_pb2.Completion(
        **_info(completion.info),
        choices=[
            _text_choice(choice, choice.message.text, choice.logprobs)
            for choice in completion.choices
        ],
        usage=_usage(completion.usage),
    )


def completion_chunk(chunk: Chunk) -> completion_pb2.CompletionChunk:
    """Return a part of a text completion."""
    return completion_pb2.CompletionChunk(
        **_info(chunk.info),
        choices=[
            _text_choice(choice, choice.delta.content or "", choice.logprobs)
            for choice in chunk.choices
        ],
        usage=None if chunk.usage is None else _usage(chunk.usage),
    )


def _info(info: CompletionInfo) -> _Info:
    return {
        "id": info.id,
        "created": info.created,
        "model": info.model,
        "system_fingerprint": info.system_fingerprint or "",
    }


def _choice(choice: Choice) -> chat_pb2.Choice:
    return chat_pb2.Choice(
        index=choice.index,
        message=_message(choice.message),
        finish_reason=FINISH_REASONS[choice.finish_reason],
        logprobs=_logprobs(choice.logprobs),
        **_stop_reason(choice.stop_reason),
    )


def _text_choice(
    choice: Choice | ChunkChoice, text: str, logprobs: Sequence[TokenLogprob] | None
) -> completion_pb2.TextChoice:
    return completion_pb2.TextChoice(
        index=choice.index,
        text=text,
        finish_reason=FINISH_REASONS[choice.finish_reason],
        logprobs=_logprobs(logprobs),
        token_ids=choice.token_ids,
        prompt_token_ids=choice.prompt_token_ids,
        prompt_logprobs=_prompt_logprobs(choice.prompt_logprobs),
        **_stop_reason(choice.stop_reason),
    )


def _stop_reason(reason: str | int | None) -> _StopReason:
    match reason:
        case str():
            return {"stop_reason": reason}
        case int():
            return {"stop_token_id": reason}
    return {}


def _logprobs(logprobs: Sequence[TokenLogprob] | None) -> chat_pb2.Logprobs | None:
    if logprobs is None:
        return None
    return chat_pb2.Logprobs(
        content=[
            chat_pb2.TokenLogprob(
                token=item.text,
                logprob=item.logprob,
                bytes=item.bytes,
                top_logprobs=[
                    chat_pb2.TopLogprob(token=top.text, logprob=top.logprob, bytes=top.bytes)
                    for top in item.alternatives
                ],
            )
            for item in logprobs
        ]
    )


def _prompt_logprobs(tokens: Sequence[PromptToken] | None) -> list[chat_pb2.TokenLogprob]:
    return [
        chat_pb2.TokenLogprob(
            token=token.itself.text,
            logprob=token.itself.logprob,
            bytes=token.itself.bytes,
            token_id=token.itself.id,
            rank=token.itself.rank,
            top_logprobs=[
                chat_pb2.TopLogprob(
                    token=top.text,
                    logprob=top.logprob,
                    bytes=top.bytes,
                    token_id=top.id,
                    rank=top.rank,
                )
                for top in token.likeliest
            ],
        )
        for token in tokens or ()
    ]


def _message(message: Message) -> message_pb2.Message:
    return message_pb2.Message(
        role=ROLES[message.role],
        content=[message_pb2.ContentPart(text=message.text)] if message.text else [],
        tool_calls=[
            message_pb2.ToolCall(
                id=call.id,
                function=message_pb2.FunctionCall(name=call.name, arguments=call.arguments),
            )
            for call in message.tool_calls
        ],
        reasoning_content=message.reasoning_content,
    )


def _chunk_choice(choice: ChunkChoice) -> chat_pb2.ChunkChoice:
    return chat_pb2.ChunkChoice(
        index=choice.index,
        delta=_delta(choice.delta),
        finish_reason=FINISH_REASONS[choice.finish_reason],
        logprobs=_logprobs(choice.logprobs),
        **_stop_reason(choice.stop_reason),
    )


def _delta(delta: Delta) -> chat_pb2.Delta:
    return chat_pb2.Delta(
        role=ROLES[delta.role] if delta.role else message_pb2.ROLE_UNSPECIFIED,
        content=delta.content,
        reasoning_content=delta.reasoning_content,
        tool_calls=[
            chat_pb2.ToolCallDelta(
                index=call.index, id=call.id, name=call.name, arguments=call.arguments
            )
            for call in delta.tool_calls
        ],
    )


def _usage(usage: Usage) -> chat_pb2.Usage:
    return chat_pb2.Usage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        prompt_tokens_details=_prompt_tokens_details(usage),
        completion_tokens_details=_completion_tokens_details(usage),
    )


def _prompt_tokens_details(usage: Usage) -> chat_pb2.PromptTokensDetails | None:
    if usage.cached_tokens is None and not usage.image_tokens:
        return None
    return chat_pb2.PromptTokensDetails(
        cached_tokens=usage.cached_tokens, image_tokens=usage.image_tokens or None
    )


def _completion_tokens_details(usage: Usage) -> chat_pb2.CompletionTokensDetails | None:
    if usage.reasoning_tokens is None and usage.accepted_tokens is None:
        return None
    return chat_pb2.CompletionTokensDetails(
        reasoning_tokens=usage.reasoning_tokens,
        accepted_prediction_tokens=usage.accepted_tokens,
        rejected_prediction_tokens=usage.rejected_tokens,
    )
