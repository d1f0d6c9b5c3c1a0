"""JSON pointers (RFC 6901) into schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonValue


def steps(pointer: str) -> list[str]:
    """Return the names that a pointer leads through; none: it leads to the whole."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def escaped(key: str | int) -> str:
    """Return a name, or an index, as it stands in a pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


def child(value: JsonValue, name: str) -> JsonValue:
    """Return what a value has by a name, or at an index.

    Raises:
        KeyError: Nothing.
    """
    if isinstance(value, dict):
        return value[name]
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    raise KeyError(name)
