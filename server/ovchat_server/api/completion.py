"""An answer, whole or in parts."""

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
    """The new part of an answer. Appending every field in order gives the whole."""

    role: Role | None = None
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCallDelta, ...] = ()


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
    """What is new in one choice. `finish_reason` is on its last chunk only."""

    index: int
    delta: Delta
    finish_reason: FinishReason | None = None
    stop_reason: str | None = None


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
class ChatChunk:
    """A part of an answer. The last one has no choices, and the usage."""

    info: CompletionInfo
    choices: tuple[ChunkChoice, ...]
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One whole answer.

    Attributes:
        stop_reason: The stop text that matched, where one did (vLLM).
    """

    index: int
    message: Message
    finish_reason: FinishReason
    stop_reason: str | None = None


@dataclass(frozen=True, slots=True)
class ChatCompletion:
    """A whole answer."""

    info: CompletionInfo
    choices: tuple[Choice, ...]
    usage: Usage
