"""Chats as the Responses API says them."""

from __future__ import annotations

from typing import Any

from ovchat_server.domain.responses.body import LOGPROBS
from ovchat_server.domain.responses.parameters import RESPONSES
from tests.parameters.from_chats import Api


def flat(tool: Any) -> Any:
    """A tool, or the choice of one."""
    return {"type": "function", **tool["function"]} if isinstance(tool, dict) else tool


RESPONSES_API = Api(
    "responses",
    RESPONSES,
    names={
        "messages": "input",
        "max_tokens": "max_output_tokens",
        "reasoning_effort": "reasoning",
        "logprobs": "include",
    },
    values={
        "tools": lambda tools: [flat(tool) for tool in tools],
        "tool_choice": flat,
        "reasoning_effort": lambda effort: {"effort": effort},
        "logprobs": lambda asked: [LOGPROBS] if asked else [],
    },
    own=("messages", "stream", "stream_options", "top_logprobs"),
    own_bounds=("logprobs", "top_logprobs"),
    # No response names what stopped it.
    untold=(
        "chat stop a string",
        "chat stop an array",
        "chat stop_token_ids",
        "chat ignore_eos stop tokens still end the answer",
    ),
)
