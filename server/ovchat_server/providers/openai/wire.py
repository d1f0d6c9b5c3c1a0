"""What answers look like on the wire; fields that nobody reads are left out.

All are optional as far as an answer makes sense without them: servers leave out what is null.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

Byte = Annotated[int, msgspec.Meta(ge=0, le=255)]


class Function(msgspec.Struct, frozen=True):
    """The function of a call, or what is new of it."""

    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct, frozen=True):
    """A call, or what is new of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Said(msgspec.Struct, frozen=True):
    """A message, or what is new of one."""

    content: str | None = None
    refusal: str | None = None
    # vLLM has renamed it, and servers have either or both.
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] | None = None


class Top(msgspec.Struct, frozen=True):
    """A likely token."""

    token: str
    logprob: float
    bytes: list[Byte] | None = None


class Token(Top, frozen=True):
    """A token of a chat, with those that were likely in its place."""

    top_logprobs: list[Top] | None = None


class ChatLogprobs(msgspec.Struct, frozen=True):
    """The tokens of a chat."""

    content: list[Token] | None = None


class TextLogprobs(ChatLogprobs, frozen=True):
    """The tokens of a text: a list for each kind of fact, or as of a chat (llama.cpp)."""

    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None
    text_offset: list[int] | None = None


class RankedToken(msgspec.Struct, frozen=True):
    """A token that could stand in a place of a prompt (vLLM)."""

    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


# By their ids, the prompt's own first; null for the prompt's first token.
PromptLogprobs = list[dict[int, RankedToken] | None] | None


class Choice(msgspec.Struct, frozen=True):
    """What the choices of chats and texts have in common."""

    index: int = 0
    finish_reason: str | None = None
    stop_reason: str | int | None = None


class ChatChoice(Choice, frozen=True):
    """A choice of a chat, or what is new of one."""

    message: Said | None = None
    delta: Said | None = None
    logprobs: ChatLogprobs | None = None


class TextChoice(Choice, frozen=True):
    """A choice of a text completion, or what is new of one."""

    text: str | None = None
    logprobs: TextLogprobs | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    prompt_logprobs: PromptLogprobs = None


class PromptDetails(msgspec.Struct, frozen=True):
    """Of a prompt's tokens."""

    cached_tokens: int | None = None
    image_tokens: int | None = None


class CompletionDetails(msgspec.Struct, frozen=True):
    """Of the choices' tokens."""

    reasoning_tokens: int | None = None
    accepted_prediction_tokens: int | None = None
    rejected_prediction_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """How many tokens it took."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


class Answer(msgspec.Struct, frozen=True):
    """What answers have in common; `error`, or `message` without choices: it is an error."""

    usage: Usage | None = None
    error: Any = None
    message: Any = None


class ChatAnswer(Answer, frozen=True):
    """The answer to a chat, or a chunk of one."""

    choices: list[ChatChoice] | None = None
    prompt_logprobs: PromptLogprobs = None


class TextAnswer(Answer, frozen=True):
    """A text completion, or a chunk of one."""

    choices: list[TextChoice] | None = None
