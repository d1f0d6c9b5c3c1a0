"""What the JSON decoder stumbled over in a body, where it does not say so itself."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

import msgspec  # noqa: TC002

from ovchat_server.domain.errors import MalformedBodyError, shortened
from ovchat_server.domain.field_path import FieldPath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.domain.json_value import JsonValue

SURROGATE = re.compile("[\ud800-\udfff]")
# Each string, with the quote that ends it, or "" where the text ends inside of it.
STRING = re.compile(rb'"(?:[^"\\]|\\.)*+("?)', re.DOTALL)
# Python reads no more, lest it take long.
MAX_DIGITS = 4300


def cut_off(body: bytes, error: msgspec.DecodeError) -> MalformedBodyError | None:
    """Return the error that says where a body ends too soon; None where something else is wrong.

    Args:
        body: What the decoder refused.
        error: Its error.
    """
    if str(error) != "Input data was truncated":
        return None
    where = "before it is complete"
    for string in STRING.finditer(body):
        if not string[1]:
            where = f"inside of the string that begins at byte {string.start()}"
    return MalformedBodyError(f"The body is not valid JSON: it ends at byte {len(body)}, {where}.")


def named_fault(text: str) -> MalformedBodyError | None:
    """Return the error that names the first field with a value that JSON's decoders do not take.

    Python's decoder takes numbers that no float can hold and halves of surrogate pairs, so what
    it reads tells where they are.

    Args:
        text: A body that the decoder refused.

    Returns:
        None where something else is wrong.
    """
    try:
        value = json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError):
        return None
    for path, complaint in _faults(value):
        if not path.steps:
            return MalformedBodyError(f"The body {complaint}.")
        return MalformedBodyError.about(path, f"{complaint}.", MalformedBodyError.code)
    return None


def _integer(digits: str) -> float:
    return math.inf if len(digits) > MAX_DIGITS else int(digits)


def _faults(value: JsonValue) -> Iterator[tuple[FieldPath, str]]:
    # Without recursion: a body may be deep.
    waiting = [(FieldPath(), value)]
    while waiting:
        path, item = waiting.pop()
        match item:
            case float() if not math.isfinite(item):
                yield path, "must be a finite number that 64 bits can hold"
            case str() if SURROGATE.search(item):
                yield path, "contains a lone surrogate, which is half a character"
            case dict():
                if any(map(SURROGATE.search, item)):
                    yield path, "has a key with a lone surrogate, which is half a character"
                inner = [(path / shortened(key), child) for key, child in item.items()]
                waiting += reversed(inner)
            case list():
                waiting += reversed([(path / index, child) for index, child in enumerate(item)])
