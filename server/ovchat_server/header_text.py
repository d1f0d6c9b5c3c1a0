"""Texts that callers chose, fit for a header: printable ASCII, and not too long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ovchat_server.domain.field_path import SchemaPath
    from ovchat_server.domain.json_value import JsonValue

IGNORED = "x-ignored-parameters"
UNENFORCED = "x-unenforced-schemas"
# A header has room for a hint, not for a list of everything.
MAX_NAMES = 10
MAX_NAME_CHARACTERS = 100
# Of all paths together, once they are escaped; clients take 8 KiB of metadata at most.
MAX_PATHS_CHARACTERS = 3000
# Of a path: what it begins with says of which tool it is, what it ends with says what.
MAX_PATH_BEGINNING = 40
MAX_PATH_END = 120
MORE = "..."


def name_list(names: Sequence[str]) -> str:
    """List names."""
    return ", ".join(_ascii_text(name[:MAX_NAME_CHARACTERS]) for name in names[:MAX_NAMES])


def path_list(paths: Iterable[SchemaPath]) -> str:
    """List paths: as many as there is room for, and "..." if there are more."""
    listed: list[str] = []
    room = MAX_PATHS_CHARACTERS
    for path in paths:
        # A comma only stands between two.
        text = _ascii_text(_shortened(str(path))).replace(",", "\\u002c")
        room -= len(text)
        if room < 0:
            listed.append(MORE)
            break
        listed.append(text)
    return ", ".join(listed)


def ascii_json(value: JsonValue) -> str:
    """Return JSON that fits into a header: all but printable ASCII escaped."""
    # DEL is ASCII, but gRPC refuses to send it in a header.
    return json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")


def _ascii_text(text: str) -> str:
    return ascii_json(text)[1:-1]


def _shortened(path: str) -> str:
    if len(path) <= MAX_PATH_BEGINNING + MAX_PATH_END:
        return path
    return f"{path[:MAX_PATH_BEGINNING]}{MORE}{path[-MAX_PATH_END:]}"
