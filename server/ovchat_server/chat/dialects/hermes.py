"""Hermes' and Qwen's form: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_format import CallFormat
from ovchat_server.chat.dialects.json_calls import json_call, read_call
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.source import DamagedError

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

OPEN, CLOSE = "<tool_call>", "</tool_call>"


class HermesParser(MarkupParser):
    """A call may lack its closing tag where the next follows, or the answer ends."""

    tags = (OPEN,)

    def read(self, opening: str) -> Steps[None]:  # noqa: ARG002  there is one
        """Read a call."""
        source = self.source
        yield from source.skip_space()
        yield from source.literal("{")
        call = yield from read_call(self)
        yield from source.skip_space()
        if not (yield from source.close(CLOSE)) and not (yield from source.ahead(OPEN)):
            raise DamagedError
        call.end()


DIALECT = ToolDialect(
    "hermes",
    HermesParser,
    recognised=lambda template: OPEN in template,
    special_tokens=(OPEN, CLOSE),
    format=CallFormat(json_call(f"{OPEN}\n", after=f"\n{CLOSE}"), trigger=OPEN),
)
