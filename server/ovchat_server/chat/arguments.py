"""The arguments of a tool call, which travel as JSON text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject


def parse_arguments(text: str) -> JsonObject | None:
    """The object that `text` holds; None where it is none, or its strings are no text."""
    try:
        value = json.loads(text)
        # Half a surrogate pair can be escaped in JSON, but not be tokenised.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
