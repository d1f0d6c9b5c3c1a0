"""How a model reasons before an answer that follows a grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import CombinedDialect, ReasoningDialect
from ovchat_server.domain.chat import PromptEnding
from ovchat_server.engine.contract.generation import ReasoningBudget
from ovchat_server.grammar.formats import Reasoning, after_reasoning, either

if TYPE_CHECKING:
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.serving.models import TextModel

# What templates call the variable that has the model reason: Qwen's, and Granite's and DeepSeek's.
# A caller's `reasoning_effort` sets the first.
THINKING = ("enable_thinking", "thinking")
# How many tokens reasoning leaves to an answer that follows a grammar, but at most half of all.
FORM_TOKENS = 1024


def reasoning_before(
    model: TextModel, request: ChatRequest, prompt: str, *, opened: bool
) -> Reasoning | None:
    """Return how the model reasons before it answers; None if it does not.

    Args:
        model: Who answers.
        request: The request.
        prompt: The text of the prompt.
        opened: Whether the prompt ends inside the reasoning.
    """
    dialect = model.dialects.reasoning
    if isinstance(dialect, CombinedDialect):
        return None if continues(request) else Reasoning(dialect.opening, dialect.closing, opened)
    if not isinstance(dialect, ReasoningDialect):
        return None
    closed = continues(request) or prompt.rstrip().endswith(dialect.closing)
    if closed and not opened:
        return None
    asked = opened or any(request.template_arguments.get(name) is True for name in THINKING)
    return Reasoning(dialect.opening, dialect.closing, opened, asked)


def before_form(reasoning: Reasoning | None) -> Reasoning | None:
    """Return how the model reasons before an answer that has to be of a form.

    Only where it is asked to. What a model begins by itself may never end, and leave no token to
    the form. vLLM lets it.
    """
    return reasoning if reasoning is not None and reasoning.asked else None


def reasoning_budget(
    model: TextModel, reasoning: Reasoning | None, max_tokens: int
) -> ReasoningBudget | None:
    """Return how long a model may reason before an answer that has to be of a form.

    Args:
        model: The model. If its device gives no access to logits, its reasoning is unlimited.
        reasoning: How it reasons; None if it does not.
        max_tokens: The maximum number of tokens of reasoning and answer together.
    """
    if reasoning is None or not model.engine.status.capabilities.sees_logits:
        return None
    return ReasoningBudget(
        max_tokens - min(max_tokens // 2, FORM_TOKENS),
        opening="" if reasoning.opened else reasoning.opens.strip(),
        closing=tuple(model.files.tokenizer.encode(reasoning.closes)),
    )


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
