"""Chats as Anthropic's Messages API says them."""

from __future__ import annotations

from typing import Any

from ovchat_server.domain.anthropic.parameters import MESSAGES
from tests.parameters.from_chats import Api

CHOICES = {"required": "any"}


def with_input_schema(tool: Any) -> Any:
    """A tool."""
    function = dict(tool["function"])
    schema = function.pop("parameters")
    return {**function, "input_schema": schema}


def choice(value: Any) -> Any:
    """The choice of tools."""
    if isinstance(value, dict):
        return {"type": "tool", "name": value["function"]["name"]}
    return {"type": CHOICES.get(value, value)}


MESSAGES_API = Api(
    "messages",
    MESSAGES,
    names={
        "stop": "stop_sequences",
        "parallel_tool_calls": "tool_choice",
        # Effort by itself does not turn reasoning on here, and its absence not off.
        "reasoning_effort": "thinking",
    },
    values={
        "tools": lambda tools: [with_input_schema(tool) for tool in tools],
        "tool_choice": choice,
        "parallel_tool_calls": lambda parallel: {
            "type": "auto",
            "disable_parallel_tool_use": not parallel,
        },
        "reasoning_effort": lambda effort: {"type": "disabled" if effort == "none" else "adaptive"},
    },
    own=("messages", "stream"),
    own_bounds=("messages", "reasoning_effort"),
    untold=(
        # No message names the token that stopped it.
        "chat stop_token_ids",
        "chat ignore_eos stop tokens still end the answer",
        # It has to be said.
        "chat max_tokens absent is no limit",
    ),
    # Without it no model reasons here.
    always={"thinking": {"type": "adaptive"}},
)
