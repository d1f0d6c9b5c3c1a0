"""One text completion request, from validated to answered."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

from ovchat_server.api.completion import ChunkChoice, Delta, FinishReason
from ovchat_server.api.errors import ContextLengthExceededError
from ovchat_server.chat.assembler import ChoiceAssembler
from ovchat_server.serving.answer import Answer, assembly_options, completion_info
from ovchat_server.serving.generation import PromptTokens, generation_requests, truncated
from ovchat_server.serving.structured_output import checked_grammar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.api.text import TextPrompt, TextRequest
    from ovchat_server.serving.models import ModelRegistry, ServedModel


class TextCompletions:
    """Answers text completion requests."""

    def __init__(self, models: ModelRegistry) -> None:
        """Answer with `models`."""
        self._models = models

    async def answer(self, request: TextRequest) -> Answer:
        """The answer to a request, not begun yet.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """
        model = self._models.get(request.model)
        params = request.generation
        # Much text takes a while to tokenise; others go on meanwhile.
        prompts = await asyncio.to_thread(_tokenise, model, request)
        grammar = await checked_grammar(model, params.constraint)
        options = dataclasses.replace(
            assembly_options(model, params), token_ids=request.return_token_ids
        )
        return Answer(
            model,
            completion_info(model, "cmpl"),
            [] if _only_echoes(request) else generation_requests(model, params, prompts, grammar),
            sum(len(prompt.tokens) for prompt in prompts),
            [
                ChoiceAssembler(index, model.files.tokenizer, options)
                for index in range(len(prompts) * params.n)
            ],
            tuple(_opening(model, request, prompts)),
        )


def _only_echoes(request: TextRequest) -> bool:
    return request.generation.ending.max_tokens == 0


def _tokenise(model: ServedModel, request: TextRequest) -> list[PromptTokens]:
    single = len(request.prompts) == 1
    return [
        _tokens(model, request, prompt, "prompt" if single else f"prompt[{index}]")
        for index, prompt in enumerate(request.prompts)
    ]


def _tokens(
    model: ServedModel, request: TextRequest, prompt: TextPrompt, field: str
) -> PromptTokens:
    tokenizer, context = model.files.tokenizer, model.files.context_length
    if isinstance(prompt, str):
        fewest = tokenizer.fewest_tokens(prompt)
        # What is cut anyway may be longer.
        if fewest > context and not request.generation.truncation:
            raise ContextLengthExceededError.of_prompt(field, fewest, context)
        prompt = tuple(tokenizer.encode(prompt, special_tokens=request.special_tokens))
    return PromptTokens(field, truncated(model, request.generation, prompt))


def _opening(
    model: ServedModel, request: TextRequest, prompts: Sequence[PromptTokens]
) -> Iterator[ChunkChoice]:
    """What stands before each choice: its prompt, as text or tokens, where asked for."""
    if not (request.echo or request.return_token_ids):
        return
    n = request.generation.n
    for number, prompt in enumerate(prompts):
        text = _echo(model, request, number, prompt) if request.echo else None
        for choice in range(n):
            yield ChunkChoice(
                number * n + choice,
                Delta(content=text),
                finish_reason=FinishReason.LENGTH if _only_echoes(request) else None,
                token_ids=() if request.return_token_ids else None,
                prompt_token_ids=prompt.tokens if request.return_token_ids else None,
            )


def _echo(model: ServedModel, request: TextRequest, number: int, prompt: PromptTokens) -> str:
    given = request.prompts[number]
    if isinstance(given, str) and not request.generation.truncation:
        return given
    return model.files.tokenizer.decode(prompt.tokens, special_tokens=True)
