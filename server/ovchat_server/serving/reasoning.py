"""How a model reasons before an answer that follows a grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.api.chat import PromptEnding
from ovchat_server.chat.dialects.base import CombinedDialect, ReasoningDialect
from ovchat_server.grammar.formats import Reasoning, after_reasoning, either

if TYPE_CHECKING:
    from ovchat_server.api.chat import ChatRequest
    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.serving.models import TextModel


def reasoning_before(
    model: TextModel, request: ChatRequest, prompt: str, *, opened: bool
) -> Reasoning | None:
    """Return how the model reasons before it answers; None where it does not.

    Args:
        model: Who answers.
        request: What it answers.
        prompt: The text of the prompt.
        opened: The prompt ends inside the reasoning.
    """
    dialect = model.dialects.reasoning
    if isinstance(dialect, CombinedDialect):
        return None if continues(request) else Reasoning(dialect.opening, dialect.closing, opened)
    if not isinstance(dialect, ReasoningDialect):
        return None
    closed = continues(request) or prompt.rstrip().endswith(dialect.closing)
    return None if closed and not opened else Reasoning(dialect.opening, dialect.closing, opened)


def reasoned_or_not(plain: JsonObject, reasoning: Reasoning | None) -> JsonObject:
    """Return the format of text that may hold calls, after reasoning or instead of it.

    What looks like a call inside the reasoning is held to nothing.
    """
    if reasoning is None:
        return plain
    reasoned = after_reasoning(plain, reasoning)
    return either(plain, reasoned) if reasoning.opened else reasoned


def continues(request: ChatRequest) -> bool:
    """Return whether the answer continues the last message."""
    return request.prompt_ending is PromptEnding.FINAL_MESSAGE
