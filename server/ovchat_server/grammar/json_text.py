"""JSON as answers have it: `{"name": "Anna", "tags": ["a", "b"]}`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonValue

ESCAPED = re.compile(r'["\\\x00-\x1f]')
WORDS = {None: "null", True: "true", False: "false"}


def json_text(value: JsonValue) -> str:
    """Return the JSON of a value."""
    match value:
        case None | bool():
            return WORDS[value]
        case str():
            return f'"{escaped(value)}"'
        case list():
            return f"[{', '.join(map(json_text, value))}]"
        case dict():
            members = (f"{json_text(name)}: {json_text(item)}" for name, item in value.items())
            return f"{{{', '.join(members)}}}"
    return repr(value)


def escaped(text: str) -> str:
    """Escape a text for a JSON string."""
    return ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    return f"\\{char}" if char in '"\\' else f"\\u{ord(char):04x}"
