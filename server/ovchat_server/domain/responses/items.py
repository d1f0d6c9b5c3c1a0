"""The items of `input`: messages, calls and what came of them, reasoning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from ovchat_server.domain.declared import Declared, Hosted, at_most, by_type, or_text
from ovchat_server.domain.faults import fault, wrong_kind
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.limits import DEFAULT_LIMITS, text_deeper, too_many_parts
from ovchat_server.domain.messages import NO_SUCH_PARTS, ImageDetail

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.limits import Limits

# What SDKs hand back of items, and hints about caching.
HANDED_BACK = frozenset(
    {
        "id",
        "type",
        "status",
        "annotations",
        "logprobs",
        "phase",
        "caller",
        "async",
        "encrypted_content",
        "parsed",
        "parsed_arguments",
        "prompt_cache_breakpoint",
        "cache_control",
    }
)
# What OpenAI's own tools did, and what only its service can read.
HOSTED_ITEMS = (
    "web_search_call",
    "file_search_call",
    "computer_call",
    "computer_call_output",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "tool_search_call",
    "tool_search_output",
    "additional_tools",
    "configuration_update",
    "compaction",
    "compaction_trigger",
    "program",
    "program_output",
)


class Given(Declared):
    """What an SDK may hand back of an earlier response."""

    ignored: ClassVar[frozenset[str] | None] = HANDED_BACK


class TextPart(Given):
    """A text."""

    text: str


class RefusalPart(Given):
    """The words in which a model refused."""

    refusal: str


class ImagePart(Given):
    """An image."""

    ignored: ClassVar[frozenset[str] | None] = HANDED_BACK | {"file_id"}

    image_url: str
    detail: ImageDetail = "auto"

    @model_validator(mode="before")
    @classmethod
    def _without_file(cls, value: dict[str, Any]) -> dict[str, Any]:
        if value.get("file_id") is not None:
            complaint = "is not supported: no files are kept here, send the image in image_url"
            raise fault(complaint, "unsupported_value", FieldPath.of("file_id"))
        return value


Part: TypeAlias = Annotated[
    TextPart | RefusalPart | ImagePart,
    by_type(
        {"input_text": TextPart, "output_text": TextPart, "input_image": ImagePart},
        others={"refusal": RefusalPart, "text": TextPart},
        refused={name: NO_SUCH_PARTS.format(name) for name in ("input_file", "input_audio")},
    ),
]
# The last validator is the first to see a value.
Parts: TypeAlias = Annotated[list[Part], at_most("max_parts"), or_text("input_text")]


class MessageItem(Given):
    """A message."""

    role: Literal["user", "assistant", "system", "developer"]
    content: Parts


def _shallow(arguments: str, info: ValidationInfo) -> str:
    limits: Limits = info.context or DEFAULT_LIMITS
    if text_deeper(arguments, limits.max_json_depth):
        raise fault(f"is nested more than {limits.max_json_depth} levels deep")
    return arguments


class Named(Given):
    """What has the name of a tool, which may stand in a namespace."""

    name: str
    namespace: str | None = None

    @property
    def flat_name(self) -> str:
        """The name by which the model knows the tool."""
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


class FunctionCall(Named):
    """A call of a function."""

    call_id: str
    arguments: Annotated[str, AfterValidator(_shallow)]


class CustomCall(Named):
    """A call of a tool that takes a text."""

    call_id: str
    input: str


class CallOutput(Given):
    """What came of a call."""

    ignored: ClassVar[frozenset[str] | None] = HANDED_BACK | {"name", "namespace"}

    call_id: str
    output: Parts


ReasoningParts: TypeAlias = Annotated[
    list[Annotated[TextPart, by_type({"reasoning_text": TextPart, "summary_text": TextPart})]],
    at_most("max_parts"),
]


class ReasoningItem(Given):
    """What the model thought, or a summary of it."""

    content: ReasoningParts = Field(default_factory=list)
    summary: ReasoningParts = Field(default_factory=list)


class ItemReference(Given):
    """An item of the output of a response that is kept here."""

    id: str


def with_type(item: JsonValue) -> JsonValue:
    """Take an item without a type as the message or the reference that it is (OpenAI)."""
    if not isinstance(item, dict) or item.get("type") is not None:
        return item
    if "role" in item:
        return {**item, "type": "message"}
    # An item of another kind may have an id, too, where its type was forgotten.
    return {**item, "type": "item_reference"} if item.keys() - {"type"} == {"id"} else item


def _as_items(value: JsonValue, info: ValidationInfo) -> JsonValue:
    """Take a string as the one message that it is."""
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    if not isinstance(value, list):
        raise wrong_kind("a string or an array", value)
    if not value:
        raise fault("must contain at least one item")
    if complaint := too_many_parts(sum(map(_parts, value)), info.context or DEFAULT_LIMITS):
        raise fault(complaint)
    return [with_type(item) for item in value]


def _parts(item: JsonValue) -> int:
    """Count the parts of an item, a right one or not."""
    values = item.values() if isinstance(item, dict) else ()
    return sum(len(value) for value in values if isinstance(value, list))


Item: TypeAlias = Annotated[
    MessageItem | FunctionCall | CustomCall | CallOutput | ReasoningItem | ItemReference | Hosted,
    by_type(
        {
            "message": MessageItem,
            "function_call": FunctionCall,
            "function_call_output": CallOutput,
            "custom_tool_call": CustomCall,
            "custom_tool_call_output": CallOutput,
            "reasoning": ReasoningItem,
        },
        others={**dict.fromkeys(HOSTED_ITEMS, Hosted), "item_reference": ItemReference},
    ),
]
Items: TypeAlias = Annotated[list[Item], at_most("max_messages"), BeforeValidator(_as_items)]
