"""MiniCPM5's form: `<function name="f"><param name="p">value</param></function>`, as XML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_format import CallFormat, named_call
from ovchat_server.chat.dialects.json_calls import read_name
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.source import DamagedError
from ovchat_server.chat.dialects.values import Arguments, read_parameters, typed, types_of
from ovchat_server.grammar.arguments import ArgumentNotation, bare_names
from ovchat_server.grammar.ebnf import Alphabet, literal, until
from ovchat_server.grammar.notation import PYTHON_WORDS, excluding, python_notation, verbatim
from ovchat_server.grammar.text_values import TextNotation

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

FUNCTION, FUNCTION_END = '<function name="', "</function>"
PARAMETER, PARAMETER_END = '<param name="', "</param>"
LITERAL, LITERAL_END = "<![CDATA[", "]]>"
_KEY = re.compile(r'[^<>"\n]*')
_ENTITY = re.compile(r"&(amp|lt|gt|quot|apos);")
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


class MiniCpmParser(MarkupParser):
    """Values with markup or line breaks stand in CDATA sections."""

    tags = (FUNCTION,)

    def read(self, opening: str) -> Steps[None]:  # noqa: ARG002  there is one
        """Read a call."""
        source = self.source
        name = yield from read_name(source)
        yield from source.literal('">')
        arguments = Arguments(self.begin(name), self.tools, name)
        tags = (PARAMETER, '">', FUNCTION_END)
        yield from read_parameters(source, arguments, tags, _KEY, self._read_value)

    def _read_value(self) -> Steps[str]:
        source = self.source
        texts: list[str] = []
        literals = 0
        while True:
            text: list[str] = []
            tag = yield from source.until(LITERAL, PARAMETER_END, write=text.append)
            if tag is None:
                raise DamagedError
            texts.append(_ENTITY.sub(lambda entity: _CHARACTERS[entity[1]], "".join(text)))
            if tag == PARAMETER_END:
                break
            literals += 1
            texts.append((yield from source.text_until(LITERAL_END)))
        if literals and not texts[0].strip() and not texts[-1].strip():
            # Between tags, white space around a section is layout.
            texts[0] = texts[-1] = ""
        return "".join(texts)


def _written(text: str) -> str:
    if LITERAL_END not in text and any(char in text for char in "<&\n"):
        return f"{LITERAL}{text}{LITERAL_END}"
    return text.replace("&", "&amp;").replace("<", "&lt;")


_ESCAPES = {"<": "&lt;", "&": "&amp;"}
_TEXT = TextNotation(
    (
        f"text ::= (bare | {literal(LITERAL)} section) {literal(PARAMETER_END)}",
        f"section ::= {until(LITERAL_END)}",
        # No section begins in it, and no tag ends it.
        'bare ::= [^<]* ("<" ([^<!/] [^<]*)?)*',
    ),
    PARAMETER_END,
    PYTHON_WORDS,
    _written,
    Alphabet(excluding("<&"), lambda char: _ESCAPES.get(char) or verbatim(char)),
    types_of,
    typed,
)
_ARGUMENTS = ArgumentNotation(
    python_notation("<&"),
    bare_names(r'[^<>"\n]+'),
    before=PARAMETER,
    after='">',
    text=_TEXT,
)


_CALL = named_call(FUNCTION, '">', FUNCTION_END)
DIALECT = ToolDialect(
    "minicpm",
    MiniCpmParser,
    recognised=lambda template: FUNCTION in template and PARAMETER in template,
    format=CallFormat(_CALL, trigger=FUNCTION, arguments=_ARGUMENTS.grammar),
)
