"""Sets of tools and schemas, each different from all others."""

from __future__ import annotations

from typing import Any

TOOLS = 3


def tools(number: int) -> list[dict[str, Any]]:
    """The functions of a set, as of the OpenAI API."""
    return [
        {
            "type": "function",
            "function": {
                "name": f"look_up_{number}_{index}",
                "parameters": schema(number, index),
            },
        }
        for index in range(TOOLS)
    ]


def schema(number: int, index: int = 0) -> dict[str, Any]:
    """A JSON Schema."""
    return {
        "type": "object",
        "properties": {
            f"city_{number}": {"type": "string"},
            f"unit_{index}": {"enum": ["metric", "imperial"]},
            "days": {"type": "integer"},
        },
        "required": [f"city_{number}"],
        "additionalProperties": False,
    }
