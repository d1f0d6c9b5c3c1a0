"""Granite 3's form: `<|tool_call|>[{"name": ..., "arguments": {...}}]`.

Granite 4 writes calls as Hermes does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.json_calls import list_format, read_list
from ovchat_server.chat.dialects.markup import MarkupParser

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

TAG = "<|tool_call|>"
# What 3.1 writes instead.
TEXT_TAG = "<tool_call>"


class GraniteParser(MarkupParser):
    """The list has no closing tag."""

    tags = (TAG, TEXT_TAG)

    def read(self, opening: str) -> Steps[None]:  # noqa: ARG002  they begin the same
        """Read a list of calls."""
        yield from self.source.skip_space()
        yield from self.source.literal("[")
        yield from read_list(self)


DIALECT = ToolDialect(
    "granite",
    GraniteParser,
    recognised=lambda template: TAG in template and "<|start_of_role|>" in template,
    special_tokens=(TAG,),
    format=list_format(TAG, "", TAG, list_format(TEXT_TAG, "", TEXT_TAG)),
)
