"""Phi-4-mini's form: `functools[{"name": ..., "arguments": {...}}]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.json_calls import list_format, read_list
from ovchat_server.chat.dialects.markup import MarkupParser

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

PREFIX = "functools["
TAG, TAG_END = "<|tool_call|>", "<|/tool_call|>"


class Phi4Parser(MarkupParser):
    """The prefix is the one of its chat template for tools; the tags are its own tokens."""

    tags = (PREFIX, TAG)

    def read(self, opening: str) -> Steps[None]:
        """Read a list of calls."""
        source = self.source
        if opening == TAG:
            yield from source.skip_space()
            yield from source.literal("[")
        yield from read_list(self)
        if opening == TAG:
            yield from source.skip_space()
            yield from source.ending(TAG_END)


DIALECT = ToolDialect(
    "phi4",
    Phi4Parser,
    recognised=lambda template: "functools" in template or "<|/tool|>" in template,
    special_tokens=(TAG, TAG_END),
    format=list_format("functools", "", PREFIX, list_format(TAG, TAG_END, TAG)),
)
