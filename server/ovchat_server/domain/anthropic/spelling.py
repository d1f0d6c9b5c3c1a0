"""Fields of a chat as requests of the Messages API have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.field_path import FieldPath

if TYPE_CHECKING:
    from collections.abc import Mapping

SPELLED: Mapping[str, FieldPath] = {
    "stop": FieldPath.of("stop_sequences"),
    "reasoning_effort": FieldPath.of("output_config", "effort"),
    "thinking_token_budget": FieldPath.of("thinking", "budget_tokens"),
    "continue_final_message": FieldPath.of("messages"),
    "parallel_tool_calls": FieldPath.of("tool_choice", "disable_parallel_tool_use"),
}


def spelled(path: FieldPath) -> FieldPath:
    """Return the path of a field of a chat as it is in a request of this API."""
    match path.steps:
        # Messages are read from blocks, several from one message or one from several.
        case ("messages", _, "tool_calls", _, *_):
            return FieldPath.of("messages")
        case (str() as name, *inner) if name in SPELLED:
            return FieldPath(SPELLED[name].steps + tuple(inner))
    return path
