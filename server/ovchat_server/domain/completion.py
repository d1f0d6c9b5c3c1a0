"""The domain's events: completions of chats and texts, whole or in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.blocks import Block
    from ovchat_server.domain.chat import Message, Role


class FinishReason(StrEnum):
    """Why a choice ended; the values are OpenAI's.

    Attributes:
        STOP: The model ended it, or a stop string or stop token did.
        LENGTH: It has as many tokens as it may have, or was cut inside of a call.
        TOOL_CALLS: It made calls and then ended as of STOP.
        CONTENT_FILTER: A provider of the model withheld the rest.
    """

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """What is new of a tool call.

    Attributes:
        index: Which call of the choice, from 0.
        id: On the first delta of the call only; the same holds for `name`.
        arguments: New text of the arguments' JSON.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """What is new of a choice. The fields of its deltas, joined in order, are the whole.

    Attributes:
        content: Text; of a text completion all of it is here.
    """

    role: Role | None = None
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCallDelta, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that was likely at the position of another; see TokenLogprob."""

    text: str
    logprob: float
    bytes: bytes


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The log probability of a token of a choice, or of the prompt that it echoes.

    Attributes:
        text: U+FFFD where the token's bytes are not UTF-8 by themselves.
        logprob: Natural logarithm of the model's own probability, before temperature,
            filters, penalties and bias (OpenAI). None for the first token of a prompt.
        offset: Where the token begins in the choice, in characters.
        alternatives: The most likely tokens at its position, the most likely first, as many as
            were asked for. It need not be one of them.
    """

    text: str
    logprob: float | None
    bytes: bytes
    offset: int
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedToken:
    """A token that could stand at a position of a prompt; see TokenLogprob.

    Attributes:
        rank: How many tokens are at least as likely, itself included: 1 is the most likely.
            None, as `logprob`, for the prompt's first token, which follows nothing.
    """

    id: int
    text: str
    bytes: bytes
    logprob: float | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class PromptToken:
    """The log probability and rank of a token of a prompt.

    Attributes:
        likeliest: The most likely tokens at its position, the most likely first, as many as
            were asked for. It need not be one of them.
    """

    itself: RankedToken
    likeliest: tuple[RankedToken, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """How many tokens a request took.

    Attributes:
        prompt_tokens: Of all prompts, each counted once.
        completion_tokens: Of all choices, end tokens included.
        reasoning_tokens: Of these, inside the reasoning. None: the model does not reason.
        cached_tokens: Of the prompts' tokens, those that the prefix cache had. None: not known,
            or nothing was generated yet.
        image_tokens: Of the prompts' tokens, those of images.
        accepted_tokens: Of the choices' tokens, those that were proposed before they came. None:
            the model does not speculate. So the next.
        rejected_tokens: How many others were proposed.
    """

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    image_tokens: int = 0
    accepted_tokens: int | None = None
    rejected_tokens: int | None = None

    @property
    def total_tokens(self) -> int:
        """Prompts and choices together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class ChunkChoice:
    """What is new of one choice.

    Attributes:
        finish_reason: On the choice's last chunk only.
        stop_reason: On the last chunk: the stop string or token that ended it (vLLM).
        logprobs: Of the new tokens. None: there are none, or they were not asked for. The first
            chunk of a choice says that they were: it has some, or an empty tuple (OpenAI).
        content_logprobs: Of these, those of the content: without reasoning, calls and markup.
        token_ids: The new tokens. None: not asked for.
        prompt_token_ids: On the choice's first chunk. None: not asked for.
        prompt_logprobs: Of all tokens of the prompt, on the choice's first chunk. None: not
            asked for.
    """

    index: int
    delta: Delta
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    content_logprobs: tuple[TokenLogprob, ...] = ()
    token_ids: tuple[int, ...] | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    prompt_logprobs: tuple[PromptToken, ...] | None = None


@dataclass(frozen=True, slots=True)
class CompletionInfo:
    """What is the same on every chunk of a completion.

    Attributes:
        created: Seconds since 1970 (UTC).
        system_fingerprint: OpenAI's word for what changes when something changes that may change
            answers; None: not known.
        temperature: The one in use: of the request, or else the model's default; so `top_p`.
        prompt_tokens: Of all prompts; None: not known yet.
    """

    id: str
    created: int
    model: str
    system_fingerprint: str | None
    temperature: float = 1.0
    top_p: float = 1.0
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a completion.

    Attributes:
        choices: What is new. Empty on the chunk that only has the usage of the whole, the last.
        usage: Of all chunks until this one. None: not asked for.
        ended: On the last chunk, where the usage was asked for; see Completion.
    """

    info: CompletionInfo
    choices: tuple[ChunkChoice, ...]
    usage: Usage | None = None
    ended: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One whole choice.

    Attributes:
        message: Of a text completion: its text as the content.
        blocks: What the message is made of, in the order in which it came, if that was asked for.
        stop_reason: See ChunkChoice, also for what follows.
    """

    index: int
    message: Message
    finish_reason: FinishReason
    stop_reason: str | int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    prompt_logprobs: tuple[PromptToken, ...] | None = None
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole completion.

    Attributes:
        ended: When it was complete, in seconds since 1970 (UTC).
    """

    info: CompletionInfo
    choices: tuple[Choice, ...]
    usage: Usage
    ended: int = 0

    @property
    def prompt_logprobs(self) -> tuple[PromptToken, ...] | None:
        """The first choice's: of a chat, whose choices have one prompt."""
        return self.choices[0].prompt_logprobs if self.choices else None
