"""The limits of a model, checked once for each request and before anything expensive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import InvalidRequestError, Violation
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.serving.context import ContextWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.domain.limits import Limits
    from ovchat_server.engine.contract.messages import Capabilities
    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.render import RenderedPrompt

BLIND = (
    "is not supported on this model's device: its OpenVINO plugin gives no access to the logits."
)


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The operator's rules for every request.

    Attributes:
        limits: How much a request may ask for.
        strict: Whether to refuse a `max_tokens` beyond the context, instead of cutting it.
    """

    limits: Limits = DEFAULT_LIMITS
    strict: bool = False


def check_limits(
    model: TextModel,
    params: GenerationParams,
    prompts: Sequence[RenderedPrompt],
    *,
    strict: bool = False,
) -> list[int]:
    """Check that a model can do what is asked for, and has room for it.

    Args:
        model: The model that answers.
        params: The generation parameters.
        prompts: The rendered prompts.
        strict: See ContextWindow.max_tokens.

    Returns:
        The maximum number of tokens to generate for each prompt.

    Raises:
        ContextLengthExceededError: Prompt and answer do not fit.
        InvalidRequestError: A prompt is empty, a token is not in the vocabulary, or the model or
            its device does not support a parameter.
    """
    size = model.files.vocabulary_size
    _check_tokens(size, FieldPath.of("stop_token_ids"), params.ending.stop_token_ids)
    _check_tokens(size, FieldPath.of("allowed_token_ids"), params.sampling.allowed_token_ids)
    _check_capabilities(model.engine.status.capabilities, params)
    _check_biased_tokens(size, params)
    window = ContextWindow(model, params)
    for prompt in prompts:
        if not prompt.tokens:
            # An empty prompt would make the engine fail all its requests.
            raise InvalidRequestError.about(prompt.field, "results in an empty prompt.")
        _check_tokens(size, prompt.field, prompt.tokens)
        window.check_prompt(prompt.field, len(prompt.tokens))
    return [window.max_tokens(len(prompt.tokens), strict=strict) for prompt in prompts]


def check_thinking_budget(model: TextModel, request: ChatRequest) -> None:
    """Check that a model's reasoning can be bounded, if it reasons.

    Raises:
        InvalidRequestError: Its device does not support it.
    """
    blind = not model.engine.status.capabilities.sees_logits
    if request.thinking_budget is not None and model.dialects.reasoning and blind:
        raise InvalidRequestError.about("thinking_token_budget", BLIND, "unsupported_parameter")


def check_prompt_logprobs(
    params: GenerationParams, prompts: Sequence[RenderedPrompt], maximum: int, copies: int
) -> None:
    """Check how many log probabilities of prompts an answer would contain.

    Args:
        params: The generation parameters, which ask for them.
        prompts: The rendered prompts.
        maximum: The maximum for an answer.
        copies: How often the answer repeats those of each prompt.

    Raises:
        InvalidRequestError: There would be more.
    """
    asked = params.prompt_alternatives()
    each = sum(1 + alternatives for alternatives in asked.values())
    count = sum(len(prompt.tokens) for prompt in prompts) * each * copies
    if count > maximum:
        first, *others = asked
        text = ErrorText.of(
            first,
            *(ErrorText.of(" and ", other) for other in others),
            f" asked for {count} log probabilities of prompts in all, of which at most {maximum} "
            "are returned: ask for fewer alternatives or choices, or for shorter prompts.",
        )
        raise InvalidRequestError.of([Violation(first, text)])


def _check_tokens(vocabulary_size: int, field: FieldPath, tokens: Sequence[int]) -> None:
    """Refuse tokens outside the vocabulary: the engine would read past the end of its tables."""
    if not tokens or max(tokens) < vocabulary_size:
        return
    index = next(index for index, token in enumerate(tokens) if token >= vocabulary_size)
    complaint = f"is {tokens[index]}, but the model's vocabulary has {vocabulary_size} tokens."
    raise InvalidRequestError.about(field / index, complaint)


def _check_biased_tokens(vocabulary_size: int, params: GenerationParams) -> None:
    biases = params.sampling.logit_bias
    if unknown := [str(token) for token, _ in biases if token >= vocabulary_size]:
        complaint = f"is not a token id: the model's vocabulary has {vocabulary_size} tokens."
        raise InvalidRequestError.of(
            [Violation.of(FieldPath.of("logit_bias", token), complaint) for token in unknown]
        )


def _check_capabilities(capabilities: Capabilities, params: GenerationParams) -> None:
    if not capabilities.sees_logits:
        alternatives = [params.top_logprobs_field] if params.top_logprobs else []
        changes = map(FieldPath.of, params.sampling.logit_changes())
        asked = dict.fromkeys((*changes, *alternatives, *params.prompt_alternatives()))
        complaint = BLIND
    elif not capabilities.scores_prompts:
        asked = dict.fromkeys(params.prompt_alternatives())
        complaint = (
            "is not supported by vision models: OpenVINO GenAI does not score their prompts."
        )
    else:
        return
    if asked:
        raise InvalidRequestError.of(
            [Violation.of(field, complaint, "unsupported_parameter") for field in asked]
        )
