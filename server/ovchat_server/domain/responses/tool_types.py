"""The tools of a request, and the choice among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, field_validator

from ovchat_server.domain.declared import Declared, Hosted, at_most, by_type
from ovchat_server.domain.faults import fault
from ovchat_server.domain.responses.items import Named
from ovchat_server.domain.tools import CHOSEN_BY_WORD, wrong_name

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonValue

# Those of OpenAI's service.
HOSTED_TOOLS = (
    "file_search",
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "computer",
    "computer_use",
    "computer_use_preview",
    "code_interpreter",
    "image_generation",
    "mcp",
    "apply_patch",
    "shell",
    "local_shell",
    "tool_search",
    "programmatic_tool_calling",
)
NEVER_CALLED = "hosted tools are never called here"


def _checked_name(name: str) -> str:
    if complaint := wrong_name(name):
        raise fault(complaint)
    return name


Name: TypeAlias = Annotated[str, AfterValidator(_checked_name)]


class ToolType(Declared):
    """A tool."""

    # Who may call it, and when the model is told of it: hints to OpenAI's service.
    ignored: ClassVar[frozenset[str] | None] = frozenset(
        {"type", "defer_loading", "allowed_callers", "output_schema", "async", "cache_control"}
    )

    name: Name
    description: str | None = None


class FunctionTool(ToolType):
    """A function."""

    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Format(Declared):
    """A format; its type says which."""

    type: str


class Grammar(Format):
    """The grammar of a text."""

    syntax: Literal["lark", "regex"]
    definition: str


class CustomTool(ToolType):
    """A tool that takes a text."""

    format: Annotated[Format, by_type({"text": Format, "grammar": Grammar})] | None = None


class NamedCustom(Named):
    """What has the name of a tool that takes a text."""


NAMED = {"function": Named, "custom": NamedCustom}
TOOLS = {"function": FunctionTool, "custom": CustomTool}


class Namespace(ToolType):
    """Some tools under one name."""

    tools: list[
        Annotated[
            FunctionTool | CustomTool | Hosted,
            by_type(
                TOOLS,
                others=Hosted,
                refused={"namespace": "is 'namespace': no namespace may stand in another"},
            ),
        ]
    ]


AnyTool: TypeAlias = Annotated[
    FunctionTool | CustomTool | Namespace | Hosted,
    by_type({**TOOLS, "namespace": Namespace}, others=Hosted),
]


def _count(tools: list[JsonValue]) -> int:
    """Count the tools, and those in namespaces."""
    inside = [tool.get("tools") for tool in tools if isinstance(tool, dict)]
    return len(tools) + sum(len(inner) for inner in inside if isinstance(inner, list))


Tools: TypeAlias = Annotated[list[AnyTool], at_most("max_tools", _count)]


class AllowedTools(Declared):
    """The tools that may be called."""

    ignored: ClassVar[frozenset[str] | None] = frozenset({"type"})

    mode: Literal["auto", "required"]
    tools: Annotated[
        list[Annotated[Named | Hosted, by_type(NAMED, others=Hosted)]],
        at_most("max_tools"),
    ]

    @field_validator("tools")
    @classmethod
    def _some(cls, tools: list[Named | Hosted]) -> list[Named | Hosted]:
        if not tools:
            raise fault("must contain at least one tool")
        return tools


Choice: TypeAlias = Annotated[
    str | Named | AllowedTools,
    by_type(
        {**NAMED, "allowed_tools": AllowedTools},
        words=CHOSEN_BY_WORD,
        refused={name: f"is '{name}': {NEVER_CALLED}" for name in HOSTED_TOOLS},
    ),
]
