"""What answers look like on the wire; fields that nobody reads are left out.

All are optional as far as an answer makes sense without them: servers leave out what is null. What
it makes sense without may be of any type, too, and what was not asked for is not decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

Byte = Annotated[int, msgspec.Meta(ge=0, le=255)]
NULL = msgspec.Raw(b"null")


class Function(msgspec.Struct, frozen=True):
    """The function of a call, or what is new of it."""

    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct, frozen=True):
    """A call, or what is new of one."""

    # Some servers have floats.
    index: float | None = None
    id: str | None = None
    function: Function | None = None


class Text(msgspec.Struct, frozen=True):
    """A part of a content or of reasoning; other parts have no text."""

    text: str | None = None


class Part(Text, frozen=True):
    """A part of a content: text, or reasoning (Mistral)."""

    thinking: str | list[Text] | None = None


class Said(msgspec.Struct, frozen=True):
    """A message, or what is new of one."""

    content: str | list[Part] | None = None
    refusal: Any = None
    # vLLM has renamed it, and servers have either or both.
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[ToolCall] | None = None

    @property
    def answer(self) -> str:
        """What the model says."""
        return _joined(self.content) + _string(self.refusal)

    @property
    def thought(self) -> str:
        """What the model says before."""
        parts = self.content if isinstance(self.content, list) else ()
        thought = "".join(_joined(part.thinking) for part in parts)
        return thought or _string(self.reasoning_content) or _string(self.reasoning)


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

    given_index: float | None = msgspec.field(default=0, name="index")
    finish_reason: str | None = None
    given_stop: Any = msgspec.field(default=None, name="stop_reason")

    @property
    def index(self) -> int:
        """Its place among the choices."""
        return int(self.given_index or 0)

    @property
    def stop_reason(self) -> str | int | None:
        """The stop string or token that ended it (vLLM)."""
        return self.given_stop if isinstance(self.given_stop, str | int) else None


class ChatChoice(Choice, frozen=True):
    """A choice of a chat, or what is new of one."""

    message: Said | None = None
    delta: Said | None = None
    logprobs: msgspec.Raw = NULL


class TextChoice(Choice, frozen=True):
    """A choice of a text completion, or what is new of one."""

    text: str | None = None
    logprobs: msgspec.Raw = NULL
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    prompt_logprobs: msgspec.Raw = NULL


class Answer(msgspec.Struct, frozen=True):
    """What answers have in common; `error`, or `message` without choices: it is an error."""

    usage: Any = None
    error: Any = None
    message: Any = None


class ChatAnswer(Answer, frozen=True):
    """The answer to a chat, or a chunk of one."""

    choices: list[ChatChoice] | None = None
    prompt_logprobs: msgspec.Raw = NULL


class TextAnswer(Answer, frozen=True):
    """A text completion, or a chunk of one."""

    choices: list[TextChoice] | None = None


def _joined(said: str | Sequence[Text] | None) -> str:
    return said if isinstance(said, str) else "".join(part.text or "" for part in said or ())


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
