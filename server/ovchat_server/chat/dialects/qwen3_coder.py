"""Qwen3-Coder's form, and Qwen3.5's: a function and its parameters in tags, values as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_format import CallFormat, named_call
from ovchat_server.chat.dialects.json_calls import read_name
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.values import Arguments, read_parameters, text_of, typed, types_of
from ovchat_server.grammar.arguments import ArgumentNotation, bare_names
from ovchat_server.grammar.notation import PYTHON_WORDS, json_notation
from ovchat_server.grammar.text_values import tagged

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
_KEY = re.compile(r"[^<>\n]*")


class Qwen3CoderParser(MarkupParser):
    """The models forget the outer tags now and then."""

    tags = (OPEN, FUNCTION)

    def read(self, opening: str) -> Steps[None]:
        """Read calls."""
        source = self.source
        if opening == OPEN:
            yield from source.skip_space()
            yield from source.literal(FUNCTION)
        yield from self._read_function()
        yield from source.skip_space()
        yield from source.close(CLOSE)

    def _read_function(self) -> Steps[None]:
        source = self.source
        name = yield from read_name(source)
        yield from source.literal(">")
        arguments = Arguments(self.begin(name), self.tools, name)
        tags = (PARAMETER, ">", FUNCTION_END)
        yield from read_parameters(source, arguments, tags, _KEY, self._read_value)

    def _read_value(self) -> Steps[str]:
        return text_of((yield from self.source.text_until(PARAMETER_END)))


_ARGUMENTS = ArgumentNotation(
    json_notation(PARAMETER_END),
    bare_names(r"[^<>\n]+"),
    before=PARAMETER,
    after=">\n",
    # The templates write Python's words, but JSON inside other values.
    text=tagged(PARAMETER_END, f"\n{PARAMETER_END}\n", PYTHON_WORDS, types_of, typed),
)


_CALL = named_call(f"{OPEN}\n{FUNCTION}", ">\n", f"{FUNCTION_END}\n{CLOSE}")
DIALECT = ToolDialect(
    "qwen3_coder",
    Qwen3CoderParser,
    recognised=lambda template: OPEN in template and FUNCTION in template,
    special_tokens=(OPEN, CLOSE),
    format=CallFormat(_CALL, trigger=OPEN, arguments=_ARGUMENTS.grammar),
)
