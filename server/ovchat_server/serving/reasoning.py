"""How a model reasons before it answers, and how long it may."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import CombinedDialect, ReasoningDialect
from ovchat_server.domain.chat import THINKING, PromptEnding
from ovchat_server.engine.contract.generation import ReasoningBudget
from ovchat_server.grammar.formats import Reasoning, after_reasoning, either

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.serving.answer_format import AnswerFormat
    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.render import RenderedPrompt

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
    model: TextModel,
    request: ChatRequest,
    prompt: RenderedPrompt,
    answer_format: AnswerFormat,
    max_tokens: int,
) -> ReasoningBudget | None:
    """Return how long a model may reason; None for any length.

    As long as the caller says, and so that tokens are left to an answer that has to be of a form.

    Args:
        model: The model. If its device gives no access to logits, its reasoning is unlimited.
        request: The request.
        prompt: Its prompt.
        answer_format: The format of its answer.
        max_tokens: The maximum number of tokens of reasoning and answer together.
    """
    dialect, encode = model.dialects.reasoning, model.files.tokenizer.encode
    bounds = [] if request.thinking_budget is None else [request.thinking_budget]
    if answer_format.reasoning:
        bounds.append(max_tokens - min(max_tokens // 2, FORM_TOKENS))
    if (
        not bounds
        or dialect is None
        or answer_format.excludes_reasoning
        or not model.engine.status.capabilities.sees_logits
    ):
        return None
    closing = dialect.closing
    reopening: tuple[int, ...] = ()
    if isinstance(dialect, ReasoningDialect):
        # What breaks off ends its line before the mark, as the models have learned it (SGLang).
        closing = dialect.space + closing
    elif not answer_format.constrains_whole_answer:
        reopening = _reopening(dialect, encode)
    return ReasoningBudget(
        min(bounds),
        opening="" if prompt.inside_reasoning else dialect.opening.strip(),
        closing=tuple(encode(closing)),
        reopening=reopening,
    )


def _reopening(dialect: CombinedDialect, encode: Callable[[str], Sequence[int]]) -> tuple[int, ...]:
    """Return the tokens that open reasoning and nothing else, wherever they stand."""
    opening = encode(dialect.opening)
    pairs = zip(opening, encode(dialect.answer), strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return tuple(opening[: same + 1])


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
