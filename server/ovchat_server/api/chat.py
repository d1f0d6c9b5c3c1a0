"""A chat request, validated."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject


class Role(StrEnum):
    """Who says a message."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolMode(StrEnum):
    """Whether the model may call tools."""

    NONE = "none"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the assistant made.

    Attributes:
        id: Ties the call to the tool message that answers it.
        name: The function's name.
        arguments: A JSON object as text, keys in the order they were written.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Attributes:
        content: The text parts, joined. None where the turn only calls tools.
    """

    role: Role
    content: str | None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    reasoning_content: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call.

    Attributes:
        parameters: A JSON Schema, properties in the caller's order. None: no arguments.
    """

    name: str
    description: str | None
    parameters: JsonObject | None
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are chosen. None: the model's default.

    Attributes:
        temperature: 0 to 2; below 1e-5 is greedy.
        top_p: (0, 1].
        top_k: -1 and 0 turn it off.
        seed: 0 to 2^32 - 1.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What to answer, and how.

    Attributes:
        max_tokens: Most tokens to generate. None: until the model ends or the context is full.
        stop: Texts that end the answer.
        template_arguments: Variables for the chat template.
        include_usage: A stream's last chunk carries the usage.
        ignored: Names of the fields that are unknown here.
    """

    model: str
    messages: tuple[Message, ...]
    sampling: SamplingParams = SamplingParams()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    tool_mode: ToolMode = ToolMode.AUTO
    template_arguments: JsonObject = field(default_factory=dict)
    stream: bool = False
    include_usage: bool = False
    ignored: tuple[str, ...] = ()
