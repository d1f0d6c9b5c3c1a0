"""Llama 4's form, and that of other models that write calls in Python: `[f(a=1), g(b="x")]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.python_calls import read_python_calls, read_tagged_calls
from ovchat_server.chat.dialects.python_format import python_calls

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

TAG, TAG_END = "<|python_start|>", "<|python_end|>"


class PythonicParser(MarkupParser):
    """The list may stand between Llama 4's tags."""

    tags = (TAG,)
    bare = "["

    def read(self, opening: str) -> Steps[None]:
        """Read a list of calls."""
        if opening == self.bare:
            yield from read_python_calls(self, bare=True)
        else:
            yield from read_tagged_calls(self, TAG_END)


DIALECT = ToolDialect(
    "pythonic",
    PythonicParser,
    recognised=lambda template: TAG in template or "[func_name1(params_name1=" in template,
    special_tokens=(TAG, TAG_END),
    # Text holds brackets that begin no call.
    format=python_calls(),
)
