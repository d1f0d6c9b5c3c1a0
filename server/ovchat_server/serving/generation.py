"""Makes the requests to the engine from a request's parameters."""

from __future__ import annotations

import dataclasses
import secrets
import zlib
from typing import TYPE_CHECKING, TypeVar

from ovchat_server.domain.generation import MAX_ASSISTANT_TOKENS, MAX_NGRAM_SIZE
from ovchat_server.engine.contract.generation import BeamSearch, GenerationRequest, Sampling
from ovchat_server.engine.contract.speculation import NO_SPECULATION, Speculation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.generation import GenerationParams, SamplingParams, SpeculationParams
    from ovchat_server.serving.answer_format import Grammar
    from ovchat_server.serving.model_files import GenerationDefaults
    from ovchat_server.serving.render import RenderedPrompt

T = TypeVar("T")

# vLLM's threshold. With a smaller temperature the engine's sampling returns random tokens.
GREEDY_BELOW = 1e-5
# OVMS's default. Without it, top_p over a whole vocabulary costs 100 ms a step.
DEFAULT_TOP_K = 40
SEEDS = 2**32


def resolve_sampling(
    request: SamplingParams,
    defaults: GenerationDefaults,
    banned: tuple[tuple[int, ...], ...] = (),
) -> Sampling:
    """Return how to sample: by the request, else the model's defaults, else OpenAI's and OVMS's.

    Args:
        request: The parameters of the request.
        defaults: The defaults in the model's folder.
        banned: Sequences of tokens that the answer must not contain.
    """
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
        banned=banned,
    )


def resolve_speculation(
    request: SpeculationParams, defaults: GenerationDefaults, options: Speculation
) -> Speculation:
    """Return what may be proposed: by the request, else the model's defaults, else its options.

    Args:
        request: The parameters of the request.
        defaults: The defaults in the model's folder.
        options: What the model's options say; NO_SPECULATION if it does not speculate.
    """
    if not options.proposes:
        return options
    if options.drafts:
        return _drafts(request, defaults, options)
    tokens = _first(
        request.num_assistant_tokens, defaults.num_assistant_tokens, options.num_assistant_tokens
    )
    size = _first(request.max_ngram_size, defaults.max_ngram_size, options.max_ngram_size)
    return Speculation(
        num_assistant_tokens=_some(tokens),
        # Those of the model's folder may be any numbers.
        max_ngram_size=min(max(size, 1), MAX_NGRAM_SIZE),
    )


def without_effect(request: SpeculationParams, options: Speculation) -> tuple[str, ...]:
    """Return the names of the parameters that a request has and that do nothing on a model.

    Args:
        request: The parameters of the request.
        options: What the model's options say; NO_SPECULATION if it does not speculate.
    """
    acting: set[str] = set()
    if options.proposes:
        how = (
            {"assistant_confidence_threshold"}
            if options.drafts
            else {"max_ngram_size", "prediction"}
        )
        acting = {"num_assistant_tokens", *how}
    given = (name for name, value in dataclasses.asdict(request).items() if value is not None)
    return tuple(name for name in given if name not in acting)


def generation_requests(  # noqa: PLR0913  all that the engine is told
    params: GenerationParams,
    prompts: Sequence[RenderedPrompt],
    max_tokens: Sequence[int],
    sampling: Sampling,
    grammar: Grammar,
    *,
    speculation: Speculation = NO_SPECULATION,
) -> list[GenerationRequest]:
    """Return the requests for `params.n` choices of each prompt, in their order.

    A beam search is one request for all choices of a prompt; otherwise each choice is one.

    Args:
        params: The generation parameters.
        prompts: The rendered prompts, checked.
        max_tokens: The maximum number of tokens to generate for each prompt.
        sampling: How to sample; not used in a beam search.
        grammar: The grammar of the answers, checked.
        speculation: What may be proposed for a step; not used in a beam search.
    """
    ending, beams = params.ending, params.beams
    requests = [
        GenerationRequest(
            prompt=prompt.prompt,
            max_tokens=most,
            sampling=Sampling() if beams else sampling,
            beam_search=BeamSearch(beams.width, params.n, beams.length_penalty) if beams else None,
            min_tokens=ending.min_tokens,
            ignore_eos=ending.ignore_eos,
            # With a grammar the engine would mask them until its end. The assembler stops at
            # them anyway.
            stop_tokens=() if grammar.text else ending.stop_token_ids,
            # A limit that was cut to the room left says nothing about the answer's length.
            reserve_max_tokens=ending.max_tokens is not None and ending.max_tokens <= most,
            logprobs=params.logprobs,
            top_logprobs=params.top_logprobs,
            prompt_logprobs=max(params.prompt_alternatives().values(), default=None),
            grammar=grammar.text,
            self_terminating=grammar.self_terminating,
            resumptions=grammar.resumptions,
            speculation=NO_SPECULATION if beams else speculation,
        )
        for prompt, most in zip(prompts, max_tokens, strict=True)
    ]
    if beams:
        return requests
    return [
        _of_choice(request, number * params.n + choice, first=choice == 0)
        for number, request in enumerate(requests)
        for choice in range(params.n)
    ]


def _drafts(
    request: SpeculationParams, defaults: GenerationDefaults, options: Speculation
) -> Speculation:
    """Return what a draft model may propose: so many tokens, or as many as it is sure of."""
    tokens = _first(defaults.num_assistant_tokens, None, options.num_assistant_tokens)
    threshold = _first(
        defaults.assistant_confidence_threshold, None, options.assistant_confidence_threshold
    )
    if request.num_assistant_tokens is not None:
        tokens, threshold = request.num_assistant_tokens, 0.0
    elif request.assistant_confidence_threshold is not None:
        tokens, threshold = MAX_ASSISTANT_TOKENS, request.assistant_confidence_threshold
    threshold = min(max(threshold, 0.0), 1.0)
    return Speculation(_some(tokens), assistant_confidence_threshold=threshold)


def _some(tokens: int) -> int:
    """Return a number of tokens to propose; that of the model's folder may be any number."""
    return min(max(tokens, 0), MAX_ASSISTANT_TOKENS)


def _of_choice(request: GenerationRequest, number: int, *, first: bool) -> GenerationRequest:
    """Return the request for the choice `number`, which may be the first of its prompt."""
    # Each choice needs a seed of its own, or all would be equal.
    seed = (request.sampling.seed + number) % SEEDS
    return dataclasses.replace(
        request,
        sampling=dataclasses.replace(request.sampling, seed=seed),
        # The choices share a prompt, whose log probabilities are needed once.
        prompt_logprobs=request.prompt_logprobs if first else None,
    )


def _folded(seed: int) -> int:
    """Return a seed in the engine's 32 bits: the seed itself if it fits, else a hash."""
    return seed if 0 <= seed < SEEDS else zlib.crc32(seed.to_bytes(8, "big", signed=True))


def _first(request: T | None, default: T | None, last: T) -> T:
    if request is not None:
        return request
    return last if default is None else default
