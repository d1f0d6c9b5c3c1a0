"""Usage, to be compared."""

from __future__ import annotations

from typing import Any


def counted(usage: Any) -> tuple[int, int, int]:
    """What is the same whenever the same is asked: what was cached is not."""
    details = usage.completion_tokens_details
    return usage.prompt_tokens, usage.completion_tokens, getattr(details, "reasoning_tokens", 0)
