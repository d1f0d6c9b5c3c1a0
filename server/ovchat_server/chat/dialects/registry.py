"""Which dialects there are, and which of them a model speaks."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeVar

from ovchat_server.chat.dialects import (
    deepseek,
    gemma,
    glm,
    granite,
    harmony,
    hermes,
    kimi,
    lfm2,
    llama3,
    minicpm,
    mistral,
    phi4,
    pythonic,
    qwen3_coder,
    thinking,
)
from ovchat_server.chat.dialects.base import (
    CombinedDialect,
    CombinedOptions,
    ReasoningDialect,
    ToolDialect,
)
from ovchat_server.chat.dialects.chain import Chain, WithoutTags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.chat.dialects.base import OutputParser, ParserOptions

Dialect = TypeVar("Dialect", ToolDialect | CombinedDialect, ReasoningDialect | CombinedDialect)

TOOL_PARSERS = "ovchat.tool_parsers"
REASONING_PARSERS = "ovchat.reasoning_parsers"
AUTO, NONE = "auto", "none"

# The first that recognises a template is its dialect, so those whose marks are their own come
# before those whose marks others have, too: Qwen3-Coder and GLM write Hermes' tags, the newer
# models of Mistral the older ones'.
TOOL_DIALECTS: tuple[ToolDialect | CombinedDialect, ...] = (
    harmony.DIALECT,
    gemma.DIALECT,
    deepseek.DIALECT,
    kimi.DIALECT,
    lfm2.DIALECT,
    minicpm.DIALECT,
    qwen3_coder.DIALECT,
    glm.DIALECT,
    granite.DIALECT,
    phi4.DIALECT,
    mistral.DEVSTRAL,
    mistral.MISTRAL,
    pythonic.DIALECT,
    llama3.DIALECT,
    hermes.DIALECT,
)
REASONING_DIALECTS: tuple[ReasoningDialect | CombinedDialect, ...] = (
    harmony.DIALECT,
    thinking.GEMMA,
    thinking.MISTRAL,
    thinking.GRANITE,
    thinking.DEEPSEEK,
    thinking.QWEN3,
    thinking.PHI4,
    thinking.LFM2,
)


class UnknownParserError(Exception):
    """There is no parser of that name; the message lists those that there are."""


@dataclass(frozen=True, slots=True)
class Dialects:
    """What a model speaks.

    Attributes:
        tools: How it writes calls; None: it writes none that are understood.
        reasoning: How it writes reasoning; None: it does not, or it is not told apart.
        combined: How it writes both. Then `tools` and `reasoning` are this one or None.
    """

    tools: ToolDialect | CombinedDialect | None = None
    reasoning: ReasoningDialect | CombinedDialect | None = None

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """The control tokens that the parsers need to see."""
        chosen = [dialect for dialect in (self.tools, self.reasoning) if dialect]
        return tuple(dict.fromkeys(tag for dialect in chosen for tag in dialect.special_tokens))

    def opened_by(self, prompt: str) -> bool:
        """Return whether an answer to `prompt` begins inside the reasoning."""
        dialect = self.reasoning
        return isinstance(dialect, ReasoningDialect) and dialect.opened_by(prompt)

    def left_open(self, answer: str) -> bool:
        """Return whether the beginning `answer` of an answer ends inside the reasoning."""
        dialect = self.reasoning
        return isinstance(dialect, ReasoningDialect) and dialect.left_open(answer)

    def parser(
        self, calls: ParserOptions | None, *, opened: bool, hidden: tuple[str, ...] = ()
    ) -> OutputParser:
        """Create the parser of one answer.

        Args:
            calls: The options for parsing calls; None if calls are text.
            opened: Whether the answer begins inside the reasoning.
            hidden: The texts of special tokens to remove from the output.
        """
        parser = self._parser(calls, opened=opened)
        return WithoutTags(parser, hidden) if hidden else parser

    def _parser(self, calls: ParserOptions | None, *, opened: bool) -> OutputParser:
        tools, reasoning = self.tools, self.reasoning
        calls = calls if tools else None
        if isinstance(tools, CombinedDialect):
            return tools.parser(CombinedOptions(calls, reasoning is not None))
        if isinstance(reasoning, CombinedDialect):
            return reasoning.parser(CombinedOptions(None))
        return Chain(
            reasoning.parser(opened) if reasoning else None,
            tools.parser(calls) if tools and calls else None,
        )


def choose_dialects(
    template: str, tool_parser: str, reasoning_parser: str, *, knows_tools: bool = True
) -> Dialects:
    """Choose the dialects of a model.

    Args:
        template: The source of the chat template.
        tool_parser: The name of a dialect, "none", or "auto" to recognise it by the template.
        reasoning_parser: The same for reasoning.
        knows_tools: Whether the template has a place for tools. To those of which nothing else is
            recognised they are described in Hermes's form.

    Raises:
        UnknownParserError: There is no dialect with the name, or the two cannot be combined.
    """
    tools = _chosen(_tool_dialects(), tool_parser, template, "tool_parser")
    reasoning = _chosen(_reasoning_dialects(), reasoning_parser, template, "reasoning_parser")
    silent = tools is None and tool_parser == AUTO and not knows_tools
    if silent and not isinstance(reasoning, CombinedDialect):
        tools = hermes.DIALECT
    for dialect in (tools, reasoning):
        if isinstance(dialect, CombinedDialect) and {tools, reasoning} - {dialect, None}:
            raise UnknownParserError(
                f"{dialect.name} parses calls and reasoning together: set tool_parser and "
                f"reasoning_parser to it, or one of them to {NONE!r}"
            )
    return Dialects(tools, reasoning)


def tool_parsers() -> list[str]:
    """Return what `tool_parser` may be."""
    return _names(_tool_dialects())


def reasoning_parsers() -> list[str]:
    """Return what `reasoning_parser` may be."""
    return _names(_reasoning_dialects())


def _tool_dialects() -> tuple[ToolDialect | CombinedDialect, ...]:
    return TOOL_DIALECTS + _installed(TOOL_PARSERS)


def _reasoning_dialects() -> tuple[ReasoningDialect | CombinedDialect, ...]:
    return REASONING_DIALECTS + _installed(REASONING_PARSERS)


def _names(dialects: Sequence[Dialect]) -> list[str]:
    return [AUTO, NONE, *sorted(dialect.name for dialect in dialects)]


def _installed(group: str) -> tuple[Dialect, ...]:
    """Load the dialects that other packages install."""
    return tuple(entry.load() for entry in sorted(entry_points(group=group)))


def _chosen(dialects: Sequence[Dialect], name: str, template: str, option: str) -> Dialect | None:
    if name == NONE:
        return None
    if name == AUTO:
        return next((dialect for dialect in dialects if dialect.recognised(template)), None)
    for dialect in dialects:
        if dialect.name == name:
            return dialect
    names = ", ".join(_names(dialects))
    raise UnknownParserError(f"there is no {option} {name!r}; there are: {names}")
