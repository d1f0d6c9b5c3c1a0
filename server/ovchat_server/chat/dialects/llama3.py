"""Llama 3's form: `{"name": ..., "parameters": {...}}`, with `<|python_tag|>` before it or not.

Calls of the tools that the models were trained with are Python: `brave_search.call(query="x")`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_format import CallFormat
from ovchat_server.chat.dialects.json_calls import json_call, read_call
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.python_calls import read_python_call

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

TAG = "<|python_tag|>"
BUILTIN = ".call"


class Llama3Parser(MarkupParser):
    """Several calls are separated by semicolons."""

    tags = (TAG,)
    bare = "{"

    def read(self, opening: str) -> Steps[None]:
        """Read calls."""
        source = self.source
        bare = opening == self.bare
        if not bare:
            yield from source.skip_space()
            if (yield from source.first_of("{")) is None:
                call = yield from read_python_call(self, suffix=BUILTIN)
                call.end()
                return
        while True:
            call = yield from read_call(self, bare=bare)
            call.end()
            yield from source.skip_space()
            if (yield from source.first_of(";")) is None:
                return
            yield from source.skip_space()
            yield from source.literal("{")


DIALECT = ToolDialect(
    "llama3",
    Llama3Parser,
    # 3.2's templates of the small models only describe the object.
    recognised=lambda template: (
        TAG in template or 'Respond in the format {"name": function name, "parameters":' in template
    ),
    special_tokens=(TAG,),
    # Without the tag, which is for tools of their own. An answer in JSON begins like a call.
    format=CallFormat(json_call(arguments="parameters"), separator="; "),
)
