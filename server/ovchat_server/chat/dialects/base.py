"""Dialects: how families of models write tool calls and reasoning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.chat.dialects.call_format import CallFormat
    from ovchat_server.domain.chat import Tool


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A part of a tool call.

    Attributes:
        name: The function's name, which begins a new call; None continues the last call.
        arguments: The text to append to the JSON of the arguments.
    """

    name: str | None
    arguments: str


@dataclass(frozen=True, slots=True)
class Output:
    """Text to append to the reasoning and to the answer, and the parts of calls."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[CallPiece, ...] = ()


class ToolParser(Protocol):
    """Finds the calls in one answer. It never raises, whatever the text.

    Text that does not parse as a call is content, including its markup.
    """

    def feed(self, text: str) -> Output:
        """Add text and return what can be parsed of the text so far."""
        ...

    def flush(self, *, cut: bool = False) -> Output:
        """End the answer and return what was held back.

        Args:
            cut: The most tokens or a stop token ended the answer, so markup at its end is the
                opening of a call that is lost. Otherwise it is text of the answer.
        """
        ...


class OutputParser(ToolParser, Protocol):
    """Finds reasoning, too, or nothing else. It never raises, whatever the text."""

    @property
    def reasoning(self) -> bool:
        """Whether the text is inside the reasoning now."""
        ...


@dataclass(frozen=True, slots=True)
class ParserOptions:
    """What a parser knows of the request.

    Attributes:
        tools: The tools of the request. Dialects without types take them from their schemas.
        calls_enforced: Whether a grammar guarantees that calls are well formed, so that they are
            streamed as they are generated. Otherwise a call is returned once it has parsed.
        calls_only_first: Whether calls may only begin the answer.
    """

    tools: tuple[Tool, ...] = ()
    calls_enforced: bool = False
    calls_only_first: bool = False


@dataclass(frozen=True, slots=True)
class CombinedOptions:
    """What the parser of a combined dialect knows of the request.

    Attributes:
        calls: The options for parsing calls; None if calls are text.
        reasoning: Whether reasoning is parsed; otherwise it is text.
    """

    calls: ParserOptions | None = None
    reasoning: bool = True


@dataclass(frozen=True, slots=True)
class ToolDialect:
    """How a family writes calls.

    Attributes:
        name: What operators call it.
        parser: Makes the parser of one answer.
        recognised: Whether the source of a chat template speaks this dialect.
        special_tokens: Markup that the family has as control tokens: without these in the text
            there is nothing to parse.
        format: How calls are written, for grammars. None: calls cannot be forced.
    """

    name: str
    parser: Callable[[ParserOptions], ToolParser]
    recognised: Callable[[str], bool]
    special_tokens: tuple[str, ...] = ()
    format: CallFormat | None = None


@dataclass(frozen=True, slots=True)
class ReasoningDialect:
    """How a family writes reasoning.

    Attributes:
        name: What operators call it.
        parser: Makes the parser of one answer, from whether it begins inside the reasoning.
        recognised: Whether the source of a chat template speaks this dialect.
        opened_by: Whether an answer to this prompt begins inside the reasoning.
        left_open: Whether this beginning of an answer ends inside the reasoning.
        opening: What stands before the reasoning.
        closing: What stands behind it.
        special_tokens: As ToolDialect's.
        space: The white space that the models write before `closing`.
    """

    name: str
    parser: Callable[[bool], OutputParser]
    recognised: Callable[[str], bool]
    opened_by: Callable[[str], bool]
    left_open: Callable[[str], bool]
    opening: str
    closing: str
    special_tokens: tuple[str, ...] = ()
    space: str = ""


@dataclass(frozen=True, slots=True)
class CombinedDialect:
    """How a family writes both, where one cannot be read without the other.

    Attributes:
        name: What operators call it, as a tool parser and as a reasoning parser.
        parser: Makes the parser of one answer.
        recognised: Whether the source of a chat template speaks this dialect.
        opening: What stands before the reasoning.
        closing: What stands behind it, where an answer or a call follows.
        answer: What stands before an answer that is no call.
        special_tokens: As ToolDialect's.
        format: As ToolDialect's.
    """

    name: str
    parser: Callable[[CombinedOptions], OutputParser]
    recognised: Callable[[str], bool]
    opening: str
    closing: str
    answer: str
    special_tokens: tuple[str, ...] = ()
    format: CallFormat | None = None
