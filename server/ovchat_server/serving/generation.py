"""What to ask the engine: the request's wishes, the model's defaults, the context's room."""

from __future__ import annotations

import dataclasses
import secrets
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ovchat_server.api.errors import ContextLengthExceededError, InvalidRequestError
from ovchat_server.api.field_path import FieldPath
from ovchat_server.api.generation import TruncationSide
from ovchat_server.engine.contract.generation import BeamSearch, GenerationRequest, Sampling
from ovchat_server.serving.logits import check_logits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.api.generation import GenerationParams, SamplingParams, Truncation
    from ovchat_server.serving.model_files import GenerationDefaults
    from ovchat_server.serving.models import ServedModel
    from ovchat_server.serving.structured_output import Grammar

T = TypeVar("T")

# vLLM's border: below it the engine's own sampling turns into random tokens.
GREEDY_BELOW = 1e-5
# OVMS's default: a top_p over a whole vocabulary costs 100 ms a step.
DEFAULT_TOP_K = 40
SEEDS = 2**32


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """A prompt.

    Attributes:
        field: What the caller named it.
        text: What to say before the answer. None: nothing.
    """

    field: FieldPath
    tokens: tuple[int, ...]
    text: str | None = None


def generation_requests(
    model: ServedModel,
    params: GenerationParams,
    prompts: Sequence[PromptTokens],
    grammar: Grammar,
    banned: Sequence[tuple[int, ...]] = (),
) -> list[GenerationRequest]:
    """What to ask the engine for `params.n` choices of each prompt, in their order.

    Args:
        model: Who answers.
        params: What was asked for.
        prompts: What to answer.
        grammar: What the answers must be, checked.
        banned: Tokens that the answers must not hold in this order; of the model's vocabulary.

    Raises:
        ContextLengthExceededError: Prompt and answer do not fit. While the model loads, what
            its engine can hold is unknown; then `generate` says that it does not answer yet.
        InvalidRequestError: There is nothing to answer, or a token is none of the model's.
    """
    check_prompts(model, params, prompts)
    sampling = Sampling()
    if not params.beams:
        sampling = resolve_sampling(params.sampling, model.files.defaults, banned)
    requests = [_request(model, params, prompt, grammar, sampling) for prompt in prompts]
    if params.beams:
        return requests
    return [
        _of_choice(request, prompt * params.n + choice, first=choice == 0)
        for prompt, request in enumerate(requests)
        for choice in range(params.n)
    ]


def check_prompts(
    model: ServedModel, params: GenerationParams, prompts: Sequence[PromptTokens]
) -> None:
    """Refuse what the model cannot take.

    Raises:
        ContextLengthExceededError: A prompt does not fit.
        InvalidRequestError: A prompt is empty, a token is none of the model's, or its device
            cannot do what is asked for.
    """
    _check_tokens(model, FieldPath.of("stop_token_ids"), params.ending.stop_token_ids)
    _check_tokens(model, FieldPath.of("allowed_token_ids"), params.sampling.allowed_token_ids)
    check_logits(model, params)
    context = _context_length(model, params)
    # Without an answer the prompt alone may fill the context.
    room = context if params.ending.max_tokens == 0 else context - 1
    for prompt in prompts:
        if not prompt.tokens:
            # The engine takes none, and ends all it runs when it is given one.
            raise InvalidRequestError.about(prompt.field, "makes an empty prompt.")
        _check_tokens(model, prompt.field, prompt.tokens)
        if len(prompt.tokens) > room:
            least = context - room
            for answer in (params.ending.max_tokens or least, least):
                _refuse_width(model, params, len(prompt.tokens) + answer)
            longest = model.engine.status.context_length or context
            raise ContextLengthExceededError.of_prompt(prompt.field, len(prompt.tokens), longest)


def resolve_sampling(
    request: SamplingParams, defaults: GenerationDefaults, banned: Sequence[tuple[int, ...]] = ()
) -> Sampling:
    """How tokens are chosen: the request wins, then the model, then OpenAI's and OVMS's."""
    temperature = _first(request.temperature, defaults.temperature, 1.0)
    top_k = _first(request.top_k, defaults.top_k, DEFAULT_TOP_K)
    return Sampling(
        temperature=0.0 if temperature < GREEDY_BELOW else temperature,
        top_p=_first(request.top_p, defaults.top_p, 1.0),
        top_k=max(top_k, 0),
        min_p=_first(request.min_p, defaults.min_p, 0.0),
        repetition_penalty=_first(request.repetition_penalty, defaults.repetition_penalty, 1.0),
        # The engine's own default is 0, the same for everyone.
        seed=secrets.randbits(32) if request.seed is None else _folded(request.seed),
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
        bias=request.biases,
        allowed=tuple(dict.fromkeys(request.allowed_token_ids)),
        banned=tuple(banned),
    )


def truncated(
    model: ServedModel, params: GenerationParams, tokens: tuple[int, ...]
) -> tuple[int, ...]:
    """The tokens of a prompt, cut as the caller asked for."""
    truncation = params.truncation
    if truncation is None:
        return tokens
    keep = _kept(model, params, truncation)
    if len(tokens) <= keep:
        return tokens
    return tokens[-keep:] if truncation.side is TruncationSide.LEFT else tokens[:keep]


def _kept(model: ServedModel, params: GenerationParams, truncation: Truncation) -> int:
    if truncation.tokens is not None:
        return truncation.tokens
    ending = params.ending
    answer = ending.max_tokens or max(ending.min_tokens, 1)
    return max(_context_length(model, params) - answer, 1)


def _request(
    model: ServedModel,
    params: GenerationParams,
    prompt: PromptTokens,
    grammar: Grammar,
    sampling: Sampling,
) -> GenerationRequest:
    ending, beams = params.ending, params.beams
    return GenerationRequest(
        prompt=prompt.tokens,
        max_tokens=_max_tokens(model, params, prompt),
        sampling=sampling,
        beam_search=BeamSearch(beams.width, params.n, beams.length_penalty) if beams else None,
        min_tokens=ending.min_tokens,
        ignore_eos=ending.ignore_eos,
        # The engine would let none of them appear before the end of a grammar; the assembler
        # sees them anyway.
        stop_tokens=() if grammar.text else ending.stop_token_ids,
        reserve=ending.max_tokens is not None,
        logprobs=params.logprobs,
        top_logprobs=params.top_logprobs,
        prompt_logprobs=max(params.prompt_alternatives().values(), default=None),
        grammar=grammar.text,
        closed=grammar.closed,
        resumptions=grammar.resumptions,
    )


def _max_tokens(model: ServedModel, params: GenerationParams, prompt: PromptTokens) -> int:
    ending = params.ending
    context = _context_length(model, params)
    used = len(prompt.tokens)
    left = context - used
    if ending.max_tokens is not None and ending.max_tokens > left:
        _refuse_width(model, params, used + ending.max_tokens)
        raise ContextLengthExceededError.of_answer(
            ending.max_tokens_field, ending.max_tokens, used, context
        )
    if ending.min_tokens > left:
        raise ContextLengthExceededError.of_answer("min_tokens", ending.min_tokens, used, context)
    if ending.max_tokens is not None:
        return ending.max_tokens
    # The model's own default is a wish, not a limit: it never makes a request impossible.
    wished = max(model.files.defaults.max_tokens or left, ending.min_tokens)
    return min(wished, left)


def _context_length(model: ServedModel, params: GenerationParams) -> int:
    status = model.engine.status
    if not status.context_length:
        return model.files.context_length
    return status.search_lengths[params.beams.width - 1] if params.beams else status.context_length


def _refuse_width(model: ServedModel, params: GenerationParams, needed: int) -> None:
    """Refuse a search whose width leaves no room for `needed` tokens, where a narrower one does."""
    beams = params.beams
    if beams is None:
        return
    lengths = model.engine.status.search_lengths[: beams.width]
    if fitting := sum(length >= needed for length in lengths):
        raise ContextLengthExceededError.of_search(beams.field, beams.width, fitting, lengths[-1])


def _check_tokens(model: ServedModel, field: FieldPath, tokens: Sequence[int]) -> None:
    """Refuse tokens that the model does not have: the engine would read past its tables."""
    size = model.files.vocabulary_size
    if not tokens or max(tokens) < size:
        return
    index = next(index for index, token in enumerate(tokens) if token >= size)
    complaint = f"is {tokens[index]}, but the model's vocabulary has {size} tokens."
    raise InvalidRequestError.about(field / index, complaint)


def _of_choice(request: GenerationRequest, number: int, *, first: bool) -> GenerationRequest:
    """The same request for the choice `number`, which may be the first of its prompt."""
    # A seed of its own for every choice, or all would say the same.
    seed = (request.sampling.seed + number) % SEEDS
    return dataclasses.replace(
        request,
        sampling=dataclasses.replace(request.sampling, seed=seed),
        # Their prompt is the same.
        prompt_logprobs=request.prompt_logprobs if first else None,
    )


def _folded(seed: int) -> int:
    """64 bits in the 32 that the engine's generator takes; those that fit stay as they are."""
    return seed if 0 <= seed < SEEDS else zlib.crc32(seed.to_bytes(8, "big", signed=True))


def _first(request: T | None, default: T | None, last: T) -> T:
    if request is not None:
        return request
    return last if default is None else default
