"""Feeding text to parsers, and what comes out, joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import (
    CombinedDialect,
    CombinedOptions,
    Output,
    ParserOptions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat_server.chat.dialects.base import OutputParser, ToolDialect, ToolParser
    from ovchat_server.domain.chat import Tool


@dataclass
class Read:
    """Everything that a parser handed out."""

    content: str
    calls: list[tuple[str, str]]
    reasoning: str = ""


def parser_of(
    dialect: ToolDialect | CombinedDialect, tools: tuple[Tool, ...] = (), *, enforced: bool = False
) -> ToolParser | OutputParser:
    options = ParserOptions(tools, enforced)
    if isinstance(dialect, CombinedDialect):
        return dialect.parser(CombinedOptions(options))
    return dialect.parser(options)


def read(
    dialect: ToolDialect | CombinedDialect,
    pieces: Iterable[str],
    tools: tuple[Tool, ...] = (),
    *,
    enforced: bool = False,
) -> Read:
    parser = parser_of(dialect, tools, enforced=enforced)
    return joined([*(parser.feed(piece) for piece in pieces), parser.flush()])


def joined(parts: Iterable[Output]) -> Read:
    result = Read("", [])
    for part in parts:
        result.content += part.content
        result.reasoning += part.reasoning
        for piece in part.calls:
            if piece.name is not None:
                result.calls.append((piece.name, piece.arguments))
            else:
                name, arguments = result.calls[-1]
                result.calls[-1] = (name, arguments + piece.arguments)
    return result


def squeezed(text: str) -> str:
    """Without white space, of which some is markup."""
    return "".join(text.split())
