"""The fields of a request that only the Responses API has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import FailFast, Field, field_validator

from ovchat_server.domain.chat_request import ReasoningEffort
from ovchat_server.domain.declared import Declared, by_type
from ovchat_server.domain.errors import shortened
from ovchat_server.domain.faults import fault
from ovchat_server.domain.responses.items import Items
from ovchat_server.domain.responses.tool_types import Choice, Format, Tools

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonValue

# OpenAI's.
MAX_METADATA = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512

LOGPROBS = "message.output_text.logprobs"
Included: TypeAlias = Literal[
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "reasoning.encrypted_content",
    "web_search_call.results",
    "web_search_call.action.sources",
    "file_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
]
Summary: TypeAlias = Literal["auto", "concise", "detailed"]


class SchemaFormat(Format):
    """Text that conforms to a schema."""

    schema_: dict[str, Any] = Field(alias="schema")
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class Text(Declared):
    """What form the text of the answer has; its verbosity changes nothing."""

    format: (
        Annotated[
            Format,
            by_type({"text": Format, "json_object": Format, "json_schema": SchemaFormat}),
        ]
        | None
    ) = None
    verbosity: Literal["low", "medium", "high"] = "medium"


class Reasoning(Declared):
    """How long the model is to reason, and whether its reasoning is returned as a summary."""

    effort: ReasoningEffort | None = None
    summary: Summary | None = None
    # The older name.
    generate_summary: Summary | None = None


class Body(Declared):
    """The fields, with their defaults."""

    input: Items = Field(default_factory=list)
    instructions: Items | None = None
    tools: Tools = Field(default_factory=list)
    tool_choice: Choice | None = None
    text: Text = Text()
    reasoning: Reasoning = Reasoning()
    # Of many that are wrong, the first is enough.
    include: Annotated[list[Included], FailFast()] = Field(default_factory=list)
    truncation: Literal["auto", "disabled"] = "disabled"
    metadata: dict[str, str] = Field(default_factory=dict)

    @field_validator("metadata", mode="before")
    @classmethod
    def _few(cls, metadata: JsonValue) -> JsonValue:
        if isinstance(metadata, dict) and len(metadata) > MAX_METADATA:
            raise fault(f"must contain at most {MAX_METADATA} entries, got {len(metadata)}")
        return metadata

    @field_validator("metadata")
    @classmethod
    def _short(cls, metadata: dict[str, str]) -> dict[str, str]:
        for name, value in metadata.items():
            if len(name) > MAX_METADATA_KEY:
                longest = f"must have keys of at most {MAX_METADATA_KEY} characters"
                raise fault(f"{longest}, got {shortened(repr(name))}")
            if len(value) > MAX_METADATA_VALUE:
                longest = f"must have values of at most {MAX_METADATA_VALUE} characters"
                raise fault(f"{longest}, got {len(value)}")
        return metadata
