"""The blocks of messages: texts, images, calls and what came of them, thinking."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from ovchat_server.domain.anthropic.signatures import hidden_thinking
from ovchat_server.domain.declared import Declared, Hosted, at_most, by_type, or_text
from ovchat_server.domain.messages import NO_SUCH_PARTS

# What Anthropic's own tools did, and what only its service can read.
HOSTED_BLOCKS = (
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "fallback",
    # Amid the conversation: the model knows all tools from the beginning.
    "tool_addition",
    "tool_removal",
)
UNSUPPORTED_BLOCKS = (
    "search_result",
    "container_upload",
    "compaction",
    "browser_state",
)
ONLY_TEXT = "is '{}': of documents models here take only texts"
NO_FILES = "is 'file': no files are kept here, send the image itself"


class Block(Declared):
    """A block, and the keys of any that change nothing: hints, and what SDKs hand back."""

    ignored: ClassVar[frozenset[str] | None] = frozenset(
        {"type", "cache_control", "citations", "caller", "toolset_name", "parsed_output"}
    )


class TextBlock(Block):
    """A text."""

    text: str


# Of each of these types, the last validator is the first to see a value.
Texts: TypeAlias = Annotated[
    list[Annotated[TextBlock, by_type({"text": TextBlock})]],
    at_most("max_parts"),
    or_text("text"),
]


class Base64Source(Block):
    """The file of an image."""

    media_type: Literal["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"]
    data: str

    @property
    def location(self) -> str:
        """The file as a URL."""
        return f"data:{self.media_type};base64,{self.data}"


class UrlSource(Block):
    """Where an image is."""

    url: str

    @property
    def location(self) -> str:
        """The URL."""
        return self.url


class ImageBlock(Block):
    """An image. All are scaled to what the model takes, and none is refused for its size."""

    ignored: ClassVar[frozenset[str] | None] = frozenset(
        {"type", "cache_control", "transformations"}
    )

    source: Annotated[
        Base64Source | UrlSource,
        by_type({"base64": Base64Source, "url": UrlSource}, refused={"file": NO_FILES}),
    ]


class PlainText(Block):
    """The text of a document."""

    ignored: ClassVar[frozenset[str] | None] = frozenset({"type", "media_type"})

    data: str


class TextBlocks(Block):
    """The text of a document in blocks."""

    content: Texts

    @property
    def data(self) -> str:
        """The whole."""
        return "\n".join(block.text for block in self.content)


class DocumentBlock(Block):
    """A document, as far as it is a text."""

    source: Annotated[
        PlainText | TextBlocks,
        by_type(
            {"text": PlainText, "content": TextBlocks},
            refused={name: ONLY_TEXT.format(name) for name in ("base64", "url", "file")},
        ),
    ]
    title: str | None = None
    context: str | None = None

    @property
    def text(self) -> str:
        """The text, after what is said about it."""
        return "\n\n".join(filter(None, (self.title, self.context, self.source.data)))


class ToolReference(Block):
    """The name of a tool that was searched for; the model knows all tools anyway."""

    tool_name: str

    @property
    def text(self) -> str:
        """The name."""
        return self.tool_name


class ToolUse(Block):
    """A call."""

    id: str
    name: str
    input: dict[str, Any] = Field(default_factory=dict)


class Thinking(Block):
    """What the model thought. Some clients drop the signature."""

    thinking: str
    signature: str = ""

    @cached_property
    def text(self) -> str:
        """Return the thought, which may be in the signature alone."""
        return self.thinking or hidden_thinking(self.signature) or ""


class RedactedThinking(Block):
    """What a model of Anthropic's thought, for its service to read."""

    ignored: ClassVar[frozenset[str] | None] = frozenset({"type", "data"})


UNSUPPORTED = {name: NO_SUCH_PARTS.format(name) for name in UNSUPPORTED_BLOCKS}
SHOWN = {"text": TextBlock, "image": ImageBlock, "document": DocumentBlock}
Shown: TypeAlias = TextBlock | ImageBlock | DocumentBlock | ToolReference
Outcome: TypeAlias = Annotated[
    list[
        Annotated[
            Shown, by_type(SHOWN, others={"tool_reference": ToolReference}, refused=UNSUPPORTED)
        ]
    ],
    at_most("max_parts"),
    or_text("text"),
]


class ToolResult(Block):
    """What came of a call."""

    tool_use_id: str
    content: Outcome = Field(default_factory=list)
    is_error: bool = False


AnyBlock: TypeAlias = Shown | ToolUse | ToolResult | Thinking | RedactedThinking | Hosted
Blocks: TypeAlias = Annotated[
    list[
        Annotated[
            AnyBlock,
            by_type(
                {
                    **SHOWN,
                    "tool_use": ToolUse,
                    "tool_result": ToolResult,
                    "thinking": Thinking,
                    "redacted_thinking": RedactedThinking,
                },
                others=dict.fromkeys(HOSTED_BLOCKS, Hosted),
                refused=UNSUPPORTED,
            ),
        ]
    ],
    at_most("max_parts"),
    or_text("text"),
]
