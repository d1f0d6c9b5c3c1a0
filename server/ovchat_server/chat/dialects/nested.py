"""Values that are nearly JSON: lists and objects of something else's strings and words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.json_text import MAX_DEPTH
from ovchat_server.chat.dialects.source import DamagedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.chat.dialects.source import Source, Steps

    Reader = Callable[[Source], Steps[str]]


def read_nested(source: Source, read_leaf: Reader, read_key: Reader) -> Steps[str]:
    """Read a value, with the white space before it; as JSON.

    A comma may come before a closing bracket.

    Args:
        source: What to read.
        read_leaf: Reads what is neither list nor object; gives its JSON.
        read_key: Reads the key of an object; gives its JSON.

    Raises:
        DamagedError: The text is something else.
    """
    written: list[str] = []
    closings: list[str] = []
    while True:
        yield from source.skip_space()
        bracket = yield from source.first_of("[", "{")
        if bracket is None:
            written.append((yield from read_leaf(source)))
        else:
            if len(closings) == MAX_DEPTH:
                raise DamagedError
            written.append(bracket)
            closings.append("]" if bracket == "[" else "}")
            if (yield from _next(source, closings, written, read_key, comma="")):
                continue
        while closings and not (yield from _next(source, closings, written, read_key, comma=", ")):
            pass
        if not closings:
            return "".join(written)


def _next(
    source: Source, closings: list[str], written: list[str], read_key: Reader, comma: str
) -> Steps[bool]:
    """Read on to where the next value begins, or else out of the list or object."""
    yield from source.skip_space()
    separated = not comma or (yield from source.first_of(",")) is not None
    yield from source.skip_space()
    if (yield from source.first_of(closings[-1])) is not None:
        written.append(closings.pop())
        return False
    if not separated:
        raise DamagedError
    written.append(comma)
    if closings[-1] == "}":
        written.append((yield from read_key(source)))
        yield from source.skip_space()
        yield from source.literal(":")
        written.append(": ")
    return True
