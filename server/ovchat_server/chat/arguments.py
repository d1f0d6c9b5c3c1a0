"""The arguments of a tool call, which travel as JSON text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject


def parse_arguments(text: str) -> JsonObject | None:
    """Parse a JSON object; None if it is none, or has a string that is not valid Unicode."""
    try:
        value = json.loads(text)
        # Half a surrogate pair can be escaped in JSON, but not be tokenized.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
