"""OpenAI's older form of calls, for callers that gave `functions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject, JsonValue

NAMES = {"message", "delta"}


def with_function_call(answer: JsonObject) -> JsonObject:
    """Return a chat completion, or a chunk of one, with `function_call` in the place of its call.

    Args:
        answer: With one call in each choice at most.
    """
    choices = answer["choices"]
    older: list[JsonValue] = list(map(_choice, choices if isinstance(choices, list) else ()))
    return {**answer, "choices": older}


def _choice(choice: JsonValue) -> JsonValue:
    if not isinstance(choice, dict):
        return choice
    older = {key: _message(value) if key in NAMES else value for key, value in choice.items()}
    if older["finish_reason"] == "tool_calls":
        older["finish_reason"] = "function_call"
    return older


def _message(message: JsonValue) -> JsonValue:
    if not isinstance(message, dict) or "tool_calls" not in message:
        return message
    others = {key: value for key, value in message.items() if key != "tool_calls"}
    match message["tool_calls"]:
        case [{"function": called}]:
            return {**others, "function_call": called}
    return others
