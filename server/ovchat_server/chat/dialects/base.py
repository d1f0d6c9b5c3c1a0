"""What a dialect is: how a family of models writes tool calls and reasoning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.api.chat import Tool
    from ovchat_server.chat.dialects.call_format import CallFormat


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A part of a tool call.

    Attributes:
        name: Begins a new call; None goes on with the last one.
        arguments: New text of the arguments' JSON.
    """

    name: str | None
    arguments: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """New text of the answer, and the calls that follow it."""

    content: str = ""
    calls: tuple[CallPiece, ...] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """New text, told apart."""

    reasoning: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """What is new of everything."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[CallPiece, ...] = ()


class ToolParser(Protocol):
    """Finds the calls in one answer. It never raises, whatever it is fed.

    What does not parse as a call comes back as content, markup and all.
    """

    def feed(self, text: str) -> Parsed:
        """What of the text so far, and not handed out yet, is which."""
        ...

    def flush(self) -> Parsed:
        """What was held back, at the end of the answer."""
        ...


class ReasoningParser(Protocol):
    """Tells the reasoning of one answer from the rest. It never raises, whatever it is fed."""

    @property
    def reasoning(self) -> bool:
        """Whether the text is inside the reasoning now."""
        ...

    def feed(self, text: str) -> Split:
        """What of the text so far, and not handed out yet, is which."""
        ...

    def flush(self) -> Split:
        """What was held back, at the end of the answer."""
        ...


class OutputParser(Protocol):
    """Does both for one answer. It never raises, whatever it is fed."""

    @property
    def reasoning(self) -> bool:
        """Whether the text is inside the reasoning now."""
        ...

    def feed(self, text: str) -> Output:
        """What of the text so far, and not handed out yet, is which."""
        ...

    def flush(self) -> Output:
        """What was held back, at the end of the answer."""
        ...


@dataclass(frozen=True, slots=True)
class ParserOptions:
    """What a parser may know of the request.

    Attributes:
        tools: What the model was offered. Dialects without types take them from the schemas.
        trusted: A grammar guarantees that calls are well formed, so they are handed out as
            they are written. Otherwise a call is handed out whole, once it has proved to be one.
        leading: Calls begin the answer, or it has none.
    """

    tools: tuple[Tool, ...] = ()
    trusted: bool = False
    leading: bool = False


@dataclass(frozen=True, slots=True)
class CombinedOptions:
    """What the parser of a dialect that cannot be taken apart may know of the request.

    Attributes:
        calls: Of the parser that finds calls. None: calls are text.
        reasoning: Reasoning is told apart. Otherwise it is text.
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
    """

    name: str
    parser: Callable[[bool], ReasoningParser]
    recognised: Callable[[str], bool]
    opened_by: Callable[[str], bool]
    left_open: Callable[[str], bool]
    opening: str
    closing: str
    special_tokens: tuple[str, ...] = ()


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
