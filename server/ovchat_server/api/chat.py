"""A chat request, validated."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ovchat_server.api.field_path import FieldPath
from ovchat_server.api.generation import GenerationParams

if TYPE_CHECKING:
    from ovchat_server.api.generation import StreamOptions
    from ovchat_server.api.json_value import JsonObject


class Role(StrEnum):
    """Who says a message."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolMode(StrEnum):
    """Whether the model calls tools.

    Attributes:
        NAMED: It calls a certain one, once.
    """

    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the model calls tools, and which.

    Attributes:
        field: What the caller named it.
        allowed: Names of the tools it may call. None: any that it was offered.
        parallel: It may call several in one answer.
    """

    mode: ToolMode = ToolMode.NONE
    field: FieldPath = dataclasses.field(default=FieldPath.of("tool_choice"), compare=False)
    allowed: tuple[str, ...] | None = None
    parallel: bool = True

    def allows(self, name: str) -> bool:
        """Whether the tool of that name may be called."""
        return self.allowed is None or name in self.allowed

    @property
    def forced(self) -> bool:
        """Whether there must be a call."""
        return self.mode in (ToolMode.REQUIRED, ToolMode.NAMED)


class CallTags(StrEnum):
    """Tags around calls in the text, for agents that look for them (AbstractCore)."""

    QWEN3 = "|tool_call|"
    LLAMA3 = "function_call"


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


class PromptEnding(StrEnum):
    """What a prompt ends with, where the template knows the difference.

    Attributes:
        ASSISTANT_TURN: The opening of an assistant's turn: add_generation_prompt.
        NOTHING: The last message's turn, closed.
        FINAL_MESSAGE: The last message itself, for the model to go on with.
    """

    ASSISTANT_TURN = "assistant_turn"
    NOTHING = "nothing"
    FINAL_MESSAGE = "final_message"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What to answer, and how.

    Attributes:
        call_tags: Write calls into the text as well. None: OpenAI's form alone.
        include_reasoning: Hand the reasoning out.
        template_arguments: Variables for the chat template.
        documents: For templates that know retrieval.
        echo: The answer starts with the text of the message that it goes on with.
        stream: None: the whole answer at once.
        ignored: Names of the fields that are unknown here.
    """

    model: str
    messages: tuple[Message, ...]
    generation: GenerationParams = dataclasses.field(default_factory=GenerationParams)
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    call_tags: CallTags | None = None
    include_reasoning: bool = True
    template_arguments: JsonObject = dataclasses.field(default_factory=dict)
    documents: tuple[JsonObject, ...] = ()
    prompt_ending: PromptEnding = PromptEnding.ASSISTANT_TURN
    echo: bool = False
    stream: StreamOptions | None = None
    ignored: tuple[str, ...] = ()
