"""One text completion request, from validated to answered."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.api.completion import ChunkChoice, Delta, FinishReason
from ovchat_server.api.errors import ContextLengthExceededError
from ovchat_server.api.limits import DEFAULT_LIMITS
from ovchat_server.chat.assembler import ChoiceAssembler
from ovchat_server.serving.answer import Answer, assembly_options, completion_info
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.deadline import Deadline
from ovchat_server.serving.generation import (
    PromptTokens,
    check_prompts,
    generation_requests,
    truncated,
)
from ovchat_server.serving.logits import banned_tokens
from ovchat_server.serving.models import ServedModel
from ovchat_server.serving.opening import opening_of
from ovchat_server.serving.prompt_logprobs import check_prompt_logprobs
from ovchat_server.serving.structured_output import constrained

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.api.field_path import FieldPath
    from ovchat_server.api.generation import GenerationParams
    from ovchat_server.api.limits import Limits
    from ovchat_server.api.text import TextPrompt, TextRequest
    from ovchat_server.chat.assembler import AssemblyOptions
    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.serving.models import ModelRegistry
    from ovchat_server.serving.worker_pool import WorkerPool


class TextCompletions:
    """Answers text completion requests."""

    def __init__(
        self,
        models: ModelRegistry,
        workers: WorkerPool,
        request_timeout: float | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Answer with `models`, each request in `request_timeout` seconds and within `limits`."""
        self._models = models
        self._workers = workers
        self._request_timeout = request_timeout
        self._limits = limits

    async def answer(self, request: TextRequest) -> Answer:
        """The answer to a request, not begun yet.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """
        deadline = Deadline(self._request_timeout)
        async with deadline.limit():
            return await self._answer(request, deadline)

    async def _answer(self, request: TextRequest, deadline: Deadline) -> Answer:
        model = self._models.get_as(ServedModel, request.model)
        params = _asked(request)
        asks = params.ending.max_tokens != 0
        if asks:
            model.engine.check_queue(current_caller(params.priority))
        prompts = await self._workers.run(partial(_tokenise, model, request))
        grammar = await constrained(model, params.constraint, self._workers)
        banned = await banned_tokens(model, params, self._workers)
        requests: list[GenerationRequest] = []
        if asks:
            requests = generation_requests(model, params, prompts, grammar, banned)
        else:
            check_prompts(model, params, prompts)
        # Every choice tells of its prompt.
        n = request.generation.n
        check_prompt_logprobs(params, prompts, self._limits.max_prompt_logprobs, copies=n)
        options = dataclasses.replace(
            assembly_options(model, params, bound=params.constraint is not None),
            own_alternative=True,
            token_ids=request.return_token_ids,
        )
        return Answer(
            model,
            completion_info(model, "cmpl"),
            requests,
            sum(len(prompt.tokens) for prompt in prompts),
            [
                ChoiceAssembler(number * n + choice, model.files.tokenizer, told)
                for number, told in enumerate(_by_prompt(options, prompts))
                for choice in range(n)
            ],
            opening_of(
                model,
                self._workers,
                params,
                tuple(_beginnings(request, prompts)),
                prompts,
                answered=0 if _only_echoes(request) else n,
            ),
            priority=params.priority,
            deadline=deadline,
        )


def _only_echoes(request: TextRequest) -> bool:
    return request.generation.ending.max_tokens == 0


def _asked(request: TextRequest) -> GenerationParams:
    """What to ask the engine for: it tells of a prompt with a token, which nobody wanted."""
    params = request.generation
    if not (_only_echoes(request) and params.prompt_alternatives()):
        return params
    return dataclasses.replace(params, n=1, ending=dataclasses.replace(params.ending, max_tokens=1))


def _by_prompt(
    options: AssemblyOptions, prompts: Sequence[PromptTokens]
) -> Iterator[AssemblyOptions]:
    """How to assemble the choices of each prompt."""
    for prompt in prompts:
        yield dataclasses.replace(options, begins=len(prompt.text or ""))


def _tokenise(model: ServedModel, request: TextRequest) -> list[PromptTokens]:
    pairs = zip(request.prompt_fields, request.prompts, strict=True)
    return [_tokens(model, request, field, prompt) for field, prompt in pairs]


def _tokens(
    model: ServedModel, request: TextRequest, field: FieldPath, given: TextPrompt
) -> PromptTokens:
    tokenizer, context = model.files.tokenizer, model.files.context_length
    truncation = request.generation.truncation
    if isinstance(given, str):
        fewest = tokenizer.fewest_tokens(given)
        # What is cut anyway may be longer.
        if fewest > context and not truncation:
            raise ContextLengthExceededError.of_prompt(field, fewest, context)
        tokens = tuple(tokenizer.encode(given, special_tokens=request.special_tokens))
    else:
        tokens = given
    tokens = truncated(model, request.generation, tokens)
    if not request.echo:
        return PromptTokens(field, tokens)
    whole = isinstance(given, str) and not truncation
    text = given if whole else tokenizer.decode(tokens[:context], special_tokens=True)
    return PromptTokens(field, tokens, str(text))


def _beginnings(request: TextRequest, prompts: Sequence[PromptTokens]) -> Iterator[ChunkChoice]:
    """The beginning of every choice, with its prompt as text or tokens where asked for."""
    n = request.generation.n
    for number, prompt in enumerate(prompts):
        for choice in range(n):
            yield ChunkChoice(
                number * n + choice,
                Delta(content=prompt.text),
                finish_reason=FinishReason.LENGTH if _only_echoes(request) else None,
                token_ids=() if request.return_token_ids else None,
                prompt_token_ids=prompt.tokens if request.return_token_ids else None,
            )
