"""Anthropic's messages in the one form of answers."""

from __future__ import annotations

import json
from typing import Any

from tests.parameters.answers import Answer, Choice
from tests.unit.anthropic.answers import events

# A chat's words for why it ended.
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}


def of_message(message: dict[str, Any]) -> Answer:
    """A whole message."""
    choice = Choice()
    for block in message["content"]:
        _begin(choice, block)
        if block["type"] == "tool_use":
            choice.calls[-1][1] = json.dumps(block["input"])
    return Answer([_ended(choice, message)], _usage(message["usage"]))


def of_message_events(stream: bytes) -> Answer:
    """A stream, by what each event adds; each is one of the SDK's."""
    found = events(stream)
    assert found[-1]["type"] == "message_stop"
    choice = Choice()
    usages: list[tuple[int, int] | None] = []
    for event in found:
        match event["type"].removeprefix("content_block_"):
            case "start":
                _begin(choice, event["content_block"])
            case "delta":
                _add(choice, event["delta"])
                usages.append(None)
            case "message_delta":
                _ended(choice, event["delta"])
                usages.append(_usage(event["usage"]))
    # Whole messages have arguments as objects.
    choice.calls = [[name, json.dumps(json.loads(text or "{}"))] for name, text in choice.calls]
    return Answer([choice], usages[-1], usages)


def _begin(choice: Choice, block: dict[str, Any]) -> None:
    match block["type"]:
        case "text":
            choice.text += block["text"]
        case "thinking":
            choice.reasoning += block["thinking"]
        case "tool_use":
            choice.calls.append([block["name"], ""])


def _add(choice: Choice, delta: dict[str, str]) -> None:
    choice.text += delta.get("text", "")
    choice.reasoning += delta.get("thinking", "")
    if "partial_json" in delta:
        choice.calls[-1][1] += delta["partial_json"]


def _ended(choice: Choice, ending: dict[str, Any]) -> Choice:
    choice.finish = FINISHES[ending["stop_reason"]]
    choice.stop_reason = ending["stop_sequence"]
    return choice


def _usage(usage: dict[str, int]) -> tuple[int, int]:
    # What was cached is not counted among the others.
    return usage["input_tokens"] + usage["cache_read_input_tokens"], usage["output_tokens"]
