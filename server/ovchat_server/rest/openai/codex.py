"""Models as Codex CLI lists them: what its `model_catalog_url` leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.models import Capability

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.models import ModelStatus

EFFORTS = {"low": "Short reasoning", "medium": "The default", "high": "Long reasoning"}
# Codex has no instructions of its own for models that a catalog lists. Short ones: what runs on a
# processor of one's own may have a small context.
INSTRUCTIONS = """\
You are a coding agent in the user's terminal. You work in the current folder, with the tools that \
you are given.
- Look before you change: read the files that matter and find out how things are done there.
- Make the smallest change that does what was asked, and check it by running something.
- Never undo what you did not do, and do nothing that cannot be undone unless you were asked to.
- Answer briefly: what you did, and what you found.
"""
# Tokens of a tool's output that Codex hands on.
MOST_OUTPUT_TOKENS = 10_000


def catalog_model(status: ModelStatus) -> JsonObject:
    """Return a model as an entry of Codex's catalog."""
    context = status.context_length or None
    # A tool's output that fills the context would end the conversation.
    most = min(MOST_OUTPUT_TOKENS, (status.context_length or MOST_OUTPUT_TOKENS * 4) // 4)
    return {
        "slug": status.id,
        "display_name": status.id,
        "description": "Served by ovchat.",
        "base_instructions": INSTRUCTIONS,
        "context_window": context,
        "max_context_window": context,
        "truncation_policy": {"mode": "tokens", "limit": most},
        "input_modalities": [*status.input_modalities],
        "default_reasoning_level": "medium",
        "supported_reasoning_levels": [
            {"effort": effort, "description": description}
            for effort, description in EFFORTS.items()
        ],
        "supports_parallel_tool_calls": True,
        "support_verbosity": False,
        "shell_type": "unified_exec",
        "experimental_supported_tools": [],
        "visibility": "list" if Capability.CHAT in status.capabilities else "hide",
        "supported_in_api": True,
        "priority": 0,
    }
