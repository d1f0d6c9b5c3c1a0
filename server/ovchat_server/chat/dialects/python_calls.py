"""Calls that are Python's: `name(key="value", other=[1, True])`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.json_calls import read_name
from ovchat_server.chat.dialects.json_text import is_scalar, quoted
from ovchat_server.chat.dialects.nested import read_nested
from ovchat_server.chat.dialects.source import DamagedError

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.markup import Call, MarkupParser
    from ovchat_server.chat.dialects.source import Source, Steps

_WORD = re.compile(r"[-+.\w]*")
_KEY = re.compile(r"""[^=,()\[\]{}'"\n]*""")
_IN_STRING = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U00[01][0-9a-fA-F]{5}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": ""}
_ESCAPED |= {char: char for char in "\\'\""}
# JSON's words, too: some models write both.
_WORDS = {"True": "true", "False": "false", "None": "null"}


def read_tagged_calls(parser: MarkupParser, closing: str) -> Steps[None]:
    """Read a list of calls behind an opening tag, and the closing one.

    Raises:
        DamagedError: The text is something else, from here on.
    """
    source = parser.source
    yield from source.skip_space()
    yield from source.literal("[")
    yield from read_python_calls(parser)
    yield from source.skip_space()
    yield from source.ending(closing)


def read_python_calls(parser: MarkupParser, *, bare: bool = False) -> Steps[None]:
    """Read a list of calls behind its bracket. They are certain once it closes.

    Args:
        parser: Whose source to read.
        bare: Nothing but their shape says that they are calls: they are of tools that were
            offered.

    Raises:
        DamagedError: The text is something else.
    """
    source = parser.source
    calls: list[Call] = []
    while True:
        yield from source.skip_space()
        calls.append((yield from read_python_call(parser, bare=bare)))
        yield from source.skip_space()
        if (yield from source.first_of(",")) is None:
            break
    yield from source.literal("]")
    for call in calls:
        call.end()


def read_python_call(parser: MarkupParser, *, suffix: str = "", bare: bool = False) -> Steps[Call]:
    """Read a call.

    Args:
        parser: Whose source to read.
        suffix: What the name ends in, and is not part of it.
        bare: The call is of a tool that was offered.

    Raises:
        DamagedError: The text is something else.
    """
    source = parser.source
    name = yield from read_name(source)
    yield from source.literal("(")
    if not name.endswith(suffix) or (bare and not parser.offers(name)):
        raise DamagedError
    call = parser.begin(name.removesuffix(suffix))
    opening = "{"
    while True:
        yield from source.skip_space()
        if (yield from source.first_of(")")) is not None:
            break
        key = (yield from source.run(_KEY)).rstrip()
        yield from source.skip_space()
        yield from source.literal("=")
        value = yield from read_python(source)
        call.write(f"{opening}{quoted(key)}: {value}")
        opening = ", "
        yield from source.skip_space()
        if (yield from source.first_of(",")) is None:
            yield from source.literal(")")
            break
    call.write("}" if opening == ", " else "{}")
    return call


def read_python(source: Source) -> Steps[str]:
    """Read a literal of Python, with the white space before it; as JSON.

    Raises:
        DamagedError: It is not a literal, or not one that JSON has.
    """
    return (yield from read_nested(source, _read_leaf, _read_string))


def _read_leaf(source: Source) -> Steps[str]:
    if (yield from source.peek()) in _IN_STRING:
        return (yield from _read_string(source))
    word = yield from source.run(_WORD)
    word = _WORDS.get(word, word)
    if not is_scalar(word):
        raise DamagedError
    return word


def _read_string(source: Source) -> Steps[str]:
    quote = yield from source.first_of(*_IN_STRING)
    if quote is None:
        raise DamagedError
    pieces: list[str] = []
    while True:
        pieces.append((yield from source.run(_IN_STRING[quote])))
        if (yield from source.first_of(quote)) is not None:
            return quoted(_ESCAPE.sub(_unescaped, "".join(pieces)))
        yield from source.need(2)
        pieces.append(source.text[source.at : source.at + 2])
        source.at += 2


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) > 1:
        # A number above Unicode's is none of them, and stays as it is written.
        number = int(code[1:], 16)
        return chr(number) if number <= 0x10FFFF else escape[0]  # noqa: PLR2004
    # As Python: a backslash before anything else is a backslash.
    return _ESCAPED.get(code, escape[0])
