"""What text completions have of their own at each stage of a completion."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.domain.completion import ChunkChoice, Delta, FinishReason
from ovchat_server.serving.answer_format import AnswerFormat
from ovchat_server.serving.plan import assembly_options, generates
from ovchat_server.serving.render import render_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.chat.assembler import AssemblyOptions
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.serving.answer_format import AnswerFormats
    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.render import RenderedPrompt
    from ovchat_server.serving.worker_pool import WorkerPool


class TextStages:
    """Text completions: several prompts, each with its choices, which may begin with it."""

    repeats_prompts = True

    def __init__(self, formats: AnswerFormats) -> None:
        """Answer in `formats`."""
        self._formats = formats

    async def render(
        self, model: TextModel, request: TextRequest, workers: WorkerPool
    ) -> list[RenderedPrompt]:
        """Tokenize the prompts; see render_texts."""
        return await workers.run(partial(render_texts, model, request))

    async def constrain(
        self,
        model: TextModel,
        request: TextRequest,
        prompts: Sequence[RenderedPrompt],  # noqa: ARG002
        max_tokens: Sequence[int],  # noqa: ARG002
    ) -> AnswerFormat:
        """Compile the grammar of the whole text."""
        constraint = request.generation.constraint
        grammar = await self._formats.of_text(model, constraint)
        return AnswerFormat(grammar, constrains_whole_answer=constraint is not None)

    def assembly(
        self,
        model: TextModel,
        request: TextRequest,
        prompts: Sequence[RenderedPrompt],
        answer_format: AnswerFormat,
    ) -> list[AssemblyOptions]:
        """Return how to assemble the choices of each prompt, behind the text that they echo."""
        options = dataclasses.replace(
            assembly_options(
                model, request.generation, constrained=answer_format.constrains_whole_answer
            ),
            own_alternative=True,
            token_ids=request.return_token_ids,
        )
        return [
            dataclasses.replace(options, text_offset=len(prompt.text))
            for prompt in prompts
            for _ in range(request.generation.n)
        ]

    def first_chunks(
        self, request: TextRequest, prompts: Sequence[RenderedPrompt]
    ) -> Iterator[ChunkChoice]:
        """Yield a chunk for each choice, with its prompt as text or tokens where asked for."""
        n, goes_on = request.generation.n, generates(request.generation)
        logprobs = () if request.generation.logprobs else None
        for number, prompt in enumerate(prompts):
            for choice in range(n):
                yield ChunkChoice(
                    number * n + choice,
                    Delta(content=prompt.text if request.echo else None),
                    finish_reason=None if goes_on else FinishReason.LENGTH,
                    logprobs=logprobs,
                    token_ids=() if request.return_token_ids else None,
                    prompt_token_ids=prompt.tokens if request.return_token_ids else None,
                )
