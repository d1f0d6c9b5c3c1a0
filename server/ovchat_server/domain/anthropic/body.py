"""What the model is told: the system's texts, the messages, the tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from ovchat_server.domain.anthropic.blocks import (
    AnyBlock,
    Blocks,
    DocumentBlock,
    ImageBlock,
    RedactedThinking,
    TextBlock,
    Texts,
    Thinking,
    ToolResult,
    ToolUse,
)
from ovchat_server.domain.declared import Declared, Hosted, at_most, by_type
from ovchat_server.domain.errors import shortened
from ovchat_server.domain.faults import fault, wrong_kind
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.limits import DEFAULT_LIMITS, too_many_parts
from ovchat_server.domain.tools import wrong_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.json_value import JsonValue

# Anthropic's.
MAX_NAME = 128
FUNCTION = "custom"
# The types of its own tools end with the dates of their versions.
HOSTED_TOOL = re.compile(r"_20\d{6}$|^mcp_toolset$")
# What may stand in a message of each role.
IN_MESSAGES: Mapping[str, tuple[type[AnyBlock], ...]] = {
    "user": (TextBlock, ImageBlock, DocumentBlock, ToolResult, Hosted),
    "assistant": (TextBlock, Thinking, RedactedThinking, ToolUse, Hosted),
    "system": (TextBlock, Hosted),
}


class MessageItem(Declared):
    """A message.

    Attributes:
        clear_at: How long the message of a system stands: it is not shown any more once there is
            a later message of the user, or always.
    """

    # How much effort the model makes from there on.
    ignored: ClassVar[frozenset[str] | None] = frozenset({"output_config"})

    role: Literal["user", "assistant", "system"]
    content: Blocks = Field(default_factory=list)
    clear_at: Literal["next_user_message", "never"] = "never"

    @model_validator(mode="after")
    def _of_its_role(self) -> Self:
        if self.role != "system" and "content" not in self.model_fields_set:
            field = FieldPath.of("content")
            raise fault("is required", "missing_required_parameter", field)
        for index, block in enumerate(self.content):
            if not isinstance(block, IN_MESSAGES[self.role]):
                kind = (block.model_extra or {}).get("type")
                complaint = f"is '{kind}', which cannot stand in a message of the {self.role}"
                raise fault(complaint, field=FieldPath.of("content", index, "type"))
        return self


def _counted(value: JsonValue, info: ValidationInfo) -> JsonValue:
    """Refuse a conversation of nothing, and one of too many blocks."""
    if not isinstance(value, list):
        raise wrong_kind("an array", value)
    if not value:
        raise fault("must contain at least one message")
    blocks = [block for item in value for block in _content(item)]
    inside = sum(len(_content(block)) for block in blocks)
    if complaint := too_many_parts(len(blocks) + inside, info.context or DEFAULT_LIMITS):
        raise fault(complaint)
    return value


def _content(value: JsonValue) -> list[JsonValue]:
    content = value.get("content") if isinstance(value, dict) else None
    return content if isinstance(content, list) else []


def _checked_name(name: str) -> str:
    if complaint := wrong_name(name, MAX_NAME):
        raise fault(complaint)
    return name


class FunctionTool(Declared):
    """A function."""

    # Who may call it, when the model is told of it, how its calls are streamed: hints to
    # Anthropic's service.
    ignored: ClassVar[frozenset[str] | None] = frozenset(
        {
            "type",
            "cache_control",
            "allowed_callers",
            "defer_loading",
            "eager_input_streaming",
            "input_examples",
        }
    )

    name: Annotated[str, AfterValidator(_checked_name)]
    input_schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None


def _with_type(tool: JsonValue) -> JsonValue:
    """Take a tool without a type as a function, and refuse types that are not Anthropic's."""
    given = tool.get("type") if isinstance(tool, dict) else ""
    if isinstance(tool, dict) and given is None:
        return {**tool, "type": FUNCTION}
    if isinstance(given, str) and given not in ("", FUNCTION) and not HOSTED_TOOL.search(given):
        complaint = (
            f"must be '{FUNCTION}', with name and input_schema beside it, "
            f"got {shortened(repr(given))}"
        )
        raise fault(complaint, "unsupported_value", FieldPath.of("type"))
    return tool


AnyTool: TypeAlias = Annotated[
    FunctionTool | Hosted,
    by_type({FUNCTION: FunctionTool}, others=Hosted),
    BeforeValidator(_with_type),
]


class Body(Declared):
    """The fields, with their defaults."""

    system: Texts = Field(default_factory=list)
    messages: Annotated[list[MessageItem], at_most("max_messages"), BeforeValidator(_counted)] = (
        Field(default_factory=list)
    )
    tools: Annotated[list[AnyTool], at_most("max_tools")] = Field(default_factory=list)
