"""Reading JSON that arrives in pieces: where a value ends, and whether it is valid."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NoReturn

from ovchat_server.chat.dialects.source import DamagedError, finished

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Source, Steps
    from ovchat_server.domain.json_value import JsonValue

# Far more than any schema needs, far less than would trouble a reader that recurses.
MAX_DEPTH = 128
_SPACE = re.compile(r"[ \t\n\r]*")
_IN_STRING = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_IN_SCALAR = re.compile(r"[-+.0-9A-Za-z]*")
_WORD = r"(?:true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)"
_SCALAR = re.compile(_WORD)
# What lists and objects mostly hold, read at once; the rest goes step by step.
_STRING = r'"[^"\\\x00-\x1f]*+"'
_GAP = r"[ \t\n\r]*+"
_SIMPLE = rf"{_GAP}(?:{_STRING}|{_WORD}){_GAP},"
_RUNS = {
    "]": re.compile(rf"(?:{_SIMPLE})*+"),
    "}": re.compile(rf"(?:{_GAP}{_STRING}{_GAP}:{_SIMPLE})*+"),
}
# What is neither in a string nor a bracket does not count for the depth.
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


def read_value(source: Source) -> Steps[None]:
    """Read one value, with the white space before it.

    Raises:
        DamagedError: The text is not a value; reading stopped before the first wrong character.
    """
    closings: list[str] = []
    while True:
        yield from source.run(_SPACE)
        char = yield from source.peek()
        if char in "{[":
            source.at += 1
            if (yield from _open(source, closings, "}" if char == "{" else "]")):
                continue
        elif char == '"':
            yield from read_string(source)
        elif not is_scalar((yield from source.run(_IN_SCALAR))):
            raise DamagedError
        yield from _close(source, closings)
        if not closings:
            return


def _open(source: Source, closings: list[str], closing: str) -> Steps[bool]:
    """Read from behind an opening bracket to the first value; return whether there is one."""
    if len(closings) == MAX_DEPTH:
        raise DamagedError
    closings.append(closing)
    yield from source.run(_SPACE)
    if (yield from source.peek()) == closing:
        return False
    if closing == "}":
        yield from _read_key(source)
    return True


def _close(source: Source, closings: list[str]) -> Steps[None]:
    """Read from behind a value to the next one, or past the brackets that close here."""
    while closings:
        yield from source.run(_SPACE)
        char = yield from source.peek()
        if char == closings[-1]:
            source.at += 1
            closings.pop()
        elif char == ",":
            run = _RUNS[closings[-1]].match(source.text, source.at + 1)
            source.at = run.end() if run else source.at + 1
            if closings[-1] == "}":
                yield from _read_key(source)
            return
        else:
            raise DamagedError


def _read_key(source: Source) -> Steps[None]:
    yield from source.run(_SPACE)
    yield from read_string(source)
    yield from source.run(_SPACE)
    yield from source.literal(":")


def read_string(source: Source) -> Steps[None]:
    """Read a string.

    Raises:
        DamagedError: The text is something else.
    """
    yield from source.literal('"')
    while True:
        yield from source.run(_IN_STRING)
        char = yield from source.peek()
        if char == '"':
            source.at += 1
            return
        if char != "\\":
            raise DamagedError
        yield from source.need(2)
        if source.text[source.at + 1] == "u":
            yield from source.need(6)
        escape = _ESCAPE.match(source.text, source.at)
        if not escape:
            raise DamagedError
        source.at = escape.end()


def read_text(source: Source) -> Steps[str]:
    """Read a string and return its text.

    Raises:
        DamagedError: It is not a string, or has half a surrogate pair, which is not text.
    """
    pieces: list[str] = []
    yield from source.copied(pieces.append, read_string(source))
    text: str = json.loads("".join(pieces))
    return encodable(text)


def is_scalar(word: str) -> bool:
    """Return whether a word is a number, true, false or null."""
    return _SCALAR.fullmatch(word) is not None


def encodable(text: str) -> str:
    """Return the text itself, if it can be encoded.

    Raises:
        DamagedError: It has half a surrogate pair, which no door could write.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DamagedError from error
    return text


def is_whole(text: str) -> bool:
    """Return whether a text is one JSON value from its beginning to its end."""
    try:
        finished(read_value, text.strip())
    except DamagedError:
        return False
    return True


def parse(text: str, *, unique: bool = True) -> JsonValue:
    """Parse a JSON text.

    Args:
        text: The JSON.
        unique: Whether an object with a key twice is an error.

    Raises:
        DamagedError: It is not JSON, has a key twice, a number beyond doubles or half a surrogate
            pair, or is nested too deeply.
    """
    # First, because the reader recurses.
    _check_depth(text)
    try:
        value: JsonValue = json.loads(
            text,
            object_pairs_hook=_object if unique else dict,
            parse_float=_number,
            parse_constant=_refuse,
        )
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError as error:
        raise DamagedError from error
    return value


def _check_depth(text: str) -> None:
    depth = 0
    for found in _BRACKET.finditer(text):
        bracket = found[0]
        depth += (bracket in "[{") - (bracket in "]}")
        if depth > MAX_DEPTH:
            raise DamagedError


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key comes twice")
    return value


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("too large")
    return value


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def quoted(text: str) -> str:
    """Return a text as a JSON string.

    Raises:
        DamagedError: It has half a surrogate pair.
    """
    return json.dumps(encodable(text), ensure_ascii=False)
