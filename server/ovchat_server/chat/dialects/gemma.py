"""Gemma 4's form, `<|tool_call>call:f{a:<|"|>x<|"|>,b:1}<tool_call|>`.

FunctionGemma's has other tags.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_format import CallFormat, named_call
from ovchat_server.chat.dialects.json_calls import read_name
from ovchat_server.chat.dialects.json_text import is_scalar, quoted
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.nested import read_nested
from ovchat_server.chat.dialects.source import DamagedError
from ovchat_server.grammar.arguments import ArgumentNotation
from ovchat_server.grammar.notation import quoting_notation

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Source, Steps

OPEN, CLOSE, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
FUNCTION_OPEN, FUNCTION_CLOSE = "<start_function_call>", "<end_function_call>"
FUNCTION_QUOTE = "<escape>"
CALL = "call:"
_KEY = re.compile(r"[^:,{}\[\]<>\s]*")
_WORD = re.compile(r"[^,{}\[\]<>\n]*")


class GemmaParser(MarkupParser):
    """A string stands between quotes of its own, and needs no escapes."""

    tags = (OPEN, FUNCTION_OPEN)

    def read(self, opening: str) -> Steps[None]:
        """Read calls."""
        source = self.source
        yield from source.literal(CALL)
        while True:
            name = yield from read_name(source)
            if (yield from source.peek()) != "{":
                raise DamagedError
            call = self.begin(name)
            call.write((yield from read_nested(source, _read_leaf, _read_key)))
            call.end()
            if (yield from source.first_of(CALL)) is None:
                break
        yield from source.ending(CLOSE if opening == OPEN else FUNCTION_CLOSE)


def _read_leaf(source: Source) -> Steps[str]:
    string = yield from _read_string(source)
    if string is not None:
        return string
    word = (yield from source.run(_WORD)).strip()
    if word == "None":
        return "null"
    if not word:
        raise DamagedError
    # The models forget the quotes of single words.
    return word if is_scalar(word) else quoted(word)


def _read_key(source: Source) -> Steps[str]:
    string = yield from _read_string(source)
    return quoted((yield from source.run(_KEY))) if string is None else string


def _read_string(source: Source) -> Steps[str | None]:
    quote = yield from source.first_of(QUOTE, FUNCTION_QUOTE)
    return None if quote is None else quoted((yield from source.text_until(quote)))


_NOTATION = quoting_notation(QUOTE, lambda key: re.fullmatch(r"[^:,{}\[\]<>\s]+", key) is not None)
_ARGUMENTS = ArgumentNotation(_NOTATION, _NOTATION.key, after=":", comma=",")


DIALECT = ToolDialect(
    "gemma",
    GemmaParser,
    recognised=lambda template: OPEN + CALL in template or FUNCTION_OPEN in template,
    special_tokens=(OPEN, CLOSE, QUOTE, FUNCTION_OPEN, FUNCTION_CLOSE, FUNCTION_QUOTE),
    format=CallFormat(
        named_call(f"{OPEN}{CALL}", "{", f"}}{CLOSE}"),
        separator="",
        trigger=OPEN,
        arguments=_ARGUMENTS.grammar,
    ),
)
