"""LFM2's form: `<|tool_call_start|>[f(a="x"), g()]<|tool_call_end|>`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.python_calls import read_tagged_calls
from ovchat_server.chat.dialects.python_format import python_calls

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

OPEN, CLOSE = "<|tool_call_start|>", "<|tool_call_end|>"


class Lfm2Parser(MarkupParser):
    """Calls are Python's, in a list between tags."""

    tags = (OPEN,)

    def read(self, opening: str) -> Steps[None]:  # noqa: ARG002  there is one
        """Read a list of calls."""
        yield from read_tagged_calls(self, CLOSE)


DIALECT = ToolDialect(
    "lfm2",
    Lfm2Parser,
    # 2's template only shows where the tools stand.
    recognised=lambda template: OPEN in template or "<|tool_list_start|>" in template,
    special_tokens=(OPEN, CLOSE),
    format=python_calls(OPEN, CLOSE, OPEN),
)
