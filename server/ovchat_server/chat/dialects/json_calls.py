"""Calls that are JSON objects with a name and arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.call_format import CallFormat, named_call
from ovchat_server.chat.dialects.json_text import read_text, read_value
from ovchat_server.chat.dialects.source import DamagedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.chat.dialects.call_format import CalledTool
    from ovchat_server.chat.dialects.markup import Call, MarkupParser
    from ovchat_server.chat.dialects.source import Source, Steps
    from ovchat_server.domain.json_value import JsonObject

# Names that are written without quotes: OpenAI's characters, and those that servers of tools add.
NAME = re.compile(r"[\w.:/-]*")
MOST_NAME_CHARACTERS = 256


def read_name(source: Source) -> Steps[str]:
    """Read a name that stands there without quotes.

    Raises:
        DamagedError: There is none.
    """
    name = yield from source.run(NAME, MOST_NAME_CHARACTERS)
    if not name:
        raise DamagedError
    return name


def read_arguments(call: Call, source: Source) -> Steps[None]:
    """Read a call's arguments, an object, with the white space before it.

    Raises:
        DamagedError: The text is something else.
    """
    yield from source.skip_space()
    if (yield from source.peek()) != "{":
        raise DamagedError
    yield from source.copied(call.write, read_value(source))


def read_call(parser: MarkupParser, *, bare: bool = False) -> Steps[Call]:
    """Read a call, `{"name": ..., "arguments": {...}}`, behind its brace.

    Its arguments may be called parameters, as Llama's models do, or be left out. Whatever else
    it holds is ignored.

    Args:
        parser: Whose source to read.
        bare: Nothing but its shape says that it is a call: it is the call of a tool that was
            offered, with its arguments, and holds nothing else but a type.

    Raises:
        DamagedError: The text is something else.
    """
    source = parser.source
    call: Call | None = None
    early: list[str] = []
    seen: set[str] = set()
    while True:
        yield from source.skip_space()
        key = yield from read_text(source)
        yield from source.skip_space()
        yield from source.literal(":")
        yield from source.skip_space()
        kind = "arguments" if key == "parameters" else key
        if kind in seen:
            raise DamagedError
        seen.add(kind)
        if kind == "name":
            call = yield from _begin(parser, early, bare=bare)
        elif kind == "arguments":
            if (yield from source.peek()) != "{":
                raise DamagedError
            yield from source.copied(call.write if call else early.append, read_value(source))
        elif bare and kind != "type":
            raise DamagedError
        else:
            yield from read_value(source)
        yield from source.skip_space()
        ending = yield from source.first_of(",", "}")
        if ending is None:
            raise DamagedError
        if ending == "}":
            break
    if call is None or (bare and "arguments" not in seen):
        raise DamagedError
    return call


def _begin(parser: MarkupParser, early: list[str], *, bare: bool) -> Steps[Call]:
    name = yield from read_text(parser.source)
    if bare and not parser.offers(name):
        raise DamagedError
    call = parser.begin(name)
    # Arguments that came before the name.
    if early:
        call.write("".join(early))
    return call


def read_list(parser: MarkupParser) -> Steps[None]:
    """Read a list of calls behind its bracket; each is certain once it closes.

    Raises:
        DamagedError: The text is something else, from here on.
    """
    source = parser.source
    while True:
        yield from source.skip_space()
        yield from source.literal("{")
        call = yield from read_call(parser)
        call.end()
        yield from source.skip_space()
        if (yield from source.first_of(",")) is None:
            break
    yield from source.ending("]")


def json_call(
    before: str = "", arguments: str = "arguments", after: str = ""
) -> Callable[[CalledTool], JsonObject]:
    """Return what writes calls that `read_call` reads.

    Args:
        before: What stands before one.
        arguments: What its arguments are called.
        after: What stands behind it.
    """
    return named_call(f'{before}{{"name": "', f'", "{arguments}": ', f"}}{after}")


def list_format(opening: str, closing: str, trigger: str, *also: CallFormat) -> CallFormat:
    """Return the format of calls that `read_list` reads."""
    return CallFormat(
        json_call(),
        f"{opening}[",
        separator=", ",
        closing=f"]{closing}",
        trigger=trigger,
        also=also,
    )
