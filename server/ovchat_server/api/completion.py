"""An answer, whole or in parts: of a chat, or of a text completion."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.api.chat import Message, Role


class FinishReason(StrEnum):
    """Why generation ended, in OpenAI's words."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """The new part of a tool call.

    Attributes:
        index: Which call of the answer, from 0.
        id: On the first delta of the call only; so is `name`.
        arguments: New text of the arguments' JSON.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """The new part of an answer. Appending every field in order gives the whole.

    Attributes:
        content: Of a text completion: its text.
    """

    role: Role | None = None
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCallDelta, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that was likely in the place of another; see TokenLogprob."""

    text: str
    logprob: float
    bytes: bytes


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """How likely the model found a token of the answer, or of a prompt that it begins with.

    Attributes:
        text: U+FFFD where the token's bytes alone are no text.
        logprob: Natural logarithm of the model's own probability, before temperature,
            filters, penalties and bias (OpenAI). None: of a prompt's first token.
        offset: Where the token begins in the answer, in characters.
        alternatives: The likeliest tokens in its place, the likeliest first, as far as they
            were asked for. It need not be one of them.
    """

    text: str
    logprob: float | None
    bytes: bytes
    offset: int
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedToken:
    """A token that could stand in some place of a prompt; see TokenLogprob.

    Attributes:
        rank: How many tokens are as likely at least, itself among them. None, as `logprob`: it
            is the prompt's first, which follows nothing.
    """

    id: int
    text: str
    bytes: bytes
    logprob: float | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class PromptToken:
    """How likely the model found a token of a prompt.

    Attributes:
        likeliest: The likeliest tokens in its place, the likeliest first, as far as they were
            asked for. It need not be one of them.
    """

    itself: RankedToken
    likeliest: tuple[RankedToken, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens a request took.

    Attributes:
        completion_tokens: Generated over all choices, end tokens included.
        reasoning_tokens: Of these, inside the reasoning. None: the model does not reason.
    """

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int | None = None

    @property
    def total_tokens(self) -> int:
        """Prompt and answer together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class ChunkChoice:
    """What is new in one choice.

    Attributes:
        finish_reason: On the choice's last chunk only.
        stop_reason: On the last chunk: the stop text or token that ended it (vLLM).
        logprobs: Of the tokens that are new. None: not asked for.
        token_ids: The tokens that are new. None: not asked for.
        prompt_token_ids: On the choice's first chunk, where asked for; so `prompt_logprobs`.
        prompt_logprobs: Of all tokens of the prompt. None: not asked for.
    """

    index: int
    delta: Delta
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    prompt_logprobs: tuple[PromptToken, ...] | None = None


@dataclass(frozen=True, slots=True)
class CompletionInfo:
    """What is the same on every chunk of an answer.

    Attributes:
        created: Seconds since 1970 (UTC).
    """

    id: str
    created: int
    model: str
    system_fingerprint: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of an answer. `usage` is that of all so far, where it was asked for.

    The chunk with the whole usage is the last and has no choices.
    """

    info: CompletionInfo
    choices: tuple[ChunkChoice, ...]
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One whole answer.

    Attributes:
        message: Of a text completion: its text as content.
        stop_reason: See ChunkChoice; so what follows.
    """

    index: int
    message: Message
    finish_reason: FinishReason
    stop_reason: str | int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    prompt_logprobs: tuple[PromptToken, ...] | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer."""

    info: CompletionInfo
    choices: tuple[Choice, ...]
    usage: Usage

    @property
    def prompt_logprobs(self) -> tuple[PromptToken, ...] | None:
        """Those of the first choice: of a chat, whose choices have one prompt."""
        return self.choices[0].prompt_logprobs if self.choices else None
