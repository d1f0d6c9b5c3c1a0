"""A validated chat request."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ovchat_server.domain.content import Image, text_of
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import GenerationParams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.content import Content
    from ovchat_server.domain.generation import StreamOptions
    from ovchat_server.domain.json_value import JsonObject


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


# The authors of what stands before a conversation.
SYSTEM_ROLES = (Role.SYSTEM, Role.DEVELOPER)


# What templates call the variable that has the model reason: Qwen's, and Granite's and DeepSeek's.
THINKING = ("enable_thinking", "thinking")


class ToolMode(StrEnum):
    """The mode of a tool choice.

    Attributes:
        NAMED: The model must call one certain function, once.
    """

    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the model calls tools, and which.

    Attributes:
        field: The name of the field it was read from.
        allowed: The names of the tools that the model may call; None for all of them.
        parallel: Whether the model may call several tools in one answer.
        older: Whether calls are returned in OpenAI's older form, to a caller that gave `functions`.
    """

    mode: ToolMode = ToolMode.NONE
    field: FieldPath = dataclasses.field(default=FieldPath.of("tool_choice"), compare=False)
    allowed: tuple[str, ...] | None = None
    parallel: bool = True
    older: bool = False

    def allows(self, name: str) -> bool:
        """Return whether the tool with this name may be called."""
        return self.allowed is None or name in self.allowed

    @property
    def forced(self) -> bool:
        """Whether there must be a call."""
        return self.mode in (ToolMode.REQUIRED, ToolMode.NAMED)


class CallTags(StrEnum):
    """The tags around calls written into the text, for agents that need them (AbstractCore)."""

    QWEN3 = "|tool_call|"
    LLAMA3 = "function_call"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call made by the assistant.

    Attributes:
        id: The id that the tool message with the result refers to.
        name: The name of the function.
        arguments: The arguments: the text of a JSON object, keys in the order they were written.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation.

    Attributes:
        content: Its texts and images, in their order; empty if the message only calls tools.
    """

    role: Role
    content: Content = ()
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    reasoning_content: str | None = None

    @property
    def text(self) -> str:
        """The texts of the content, joined with line breaks."""
        return text_of(self.content)

    @property
    def images(self) -> tuple[Image, ...]:
        """The images of the content."""
        return tuple(part for part in self.content if isinstance(part, Image))


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call.

    Attributes:
        parameters: The JSON Schema of the arguments, properties in the caller's order; None if
            there are no arguments.
        field: The path of `parameters` in the request.
        part: A JSON pointer to what of `parameters` stands at `field`; "": all of it.
    """

    name: str
    description: str | None
    parameters: JsonObject | None
    strict: bool | None = None
    field: FieldPath = dataclasses.field(default=FieldPath(), compare=False)
    part: str = dataclasses.field(default="", compare=False)


def first_turn(messages: Sequence[Message]) -> int:
    """Return where a conversation begins, after its system messages."""
    turns = (at for at, message in enumerate(messages) if message.role not in SYSTEM_ROLES)
    return next(turns, len(messages))


class PromptEnding(StrEnum):
    """How a prompt ends, if the chat template supports it.

    Attributes:
        ASSISTANT_TURN: With the opening of an assistant message (add_generation_prompt).
        NOTHING: With the last message, closed.
        FINAL_MESSAGE: With the last message, open for the model to continue.
    """

    ASSISTANT_TURN = "assistant_turn"
    NOTHING = "nothing"
    FINAL_MESSAGE = "final_message"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat request.

    Attributes:
        call_tags: The tags in which calls are written into the text, too; None if they are not.
        include_reasoning: Whether the reasoning is returned.
        reasoning_effort: How long the model is to reason; None: as it does by itself.
        thinking: Whether the model is to reason; None: nothing is said.
        thinks_by_itself: Whether it may where nothing is said; not in Anthropic's API.
        thinking_budget: The maximum number of tokens of reasoning; None for any.
        template_kwargs: The caller's own variables of the chat template.
        documents: The documents for templates that support retrieval.
        drops_oldest: Whether the oldest messages are left out where the prompt does not fit.
        echo: Whether the answer starts with the text of the message that it continues.
        stream: The options of the stream; None if the answer is not streamed.
        ignored: The names of unknown fields.
        accepted: The names of parameters that are accepted without effect.
        id_prefix: The prefix of the answer's id (OpenAI).
    """

    model: str
    messages: tuple[Message, ...]
    generation: GenerationParams = dataclasses.field(default_factory=GenerationParams)
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    call_tags: CallTags | None = None
    include_reasoning: bool = True
    reasoning_effort: str | None = None
    thinking: bool | None = None
    thinks_by_itself: bool = True
    thinking_budget: int | None = None
    template_kwargs: JsonObject = dataclasses.field(default_factory=dict)
    documents: tuple[JsonObject, ...] = ()
    prompt_ending: PromptEnding = PromptEnding.ASSISTANT_TURN
    drops_oldest: bool = False
    echo: bool = False
    stream: StreamOptions | None = None
    ignored: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    id_prefix: str = "chatcmpl-"

    @property
    def template_arguments(self) -> JsonObject:
        """The variables of the chat template: the caller's own, effort and thinking (vLLM)."""
        effort = self.reasoning_effort
        if effort is None:
            return self.thinking_kwargs
        # Models that know no effort at least know on and off.
        by_effort: JsonObject = {"reasoning_effort": effort, "enable_thinking": effort != "none"}
        return by_effort | self.thinking_kwargs

    @property
    def thinking_kwargs(self) -> JsonObject:
        """The caller's variables of the chat template, and those that have the model reason."""
        if self.thinking is None and self.thinks_by_itself:
            return self.template_kwargs
        return dict.fromkeys(THINKING, bool(self.thinking)) | self.template_kwargs

    @property
    def choices(self) -> int:
        """The number of choices of the answer."""
        return self.generation.n


@dataclass(frozen=True, slots=True)
class RequestAsChat:
    """A request of another API, which models answer as a chat.

    Attributes:
        chat: The chat.
    """

    chat: ChatRequest

    @property
    def stream(self) -> StreamOptions | None:
        """The options of the stream; None if the answer is not streamed."""
        return self.chat.stream

    @property
    def ignored(self) -> Sequence[str]:
        """The names of fields that are ignored."""
        return self.chat.ignored
