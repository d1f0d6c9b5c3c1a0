"""One chat request, from validated to answered."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

from ovchat_server.api.chat import PromptEnding, Role, ToolMode
from ovchat_server.api.completion import ChunkChoice, Delta
from ovchat_server.chat.assembler import ChoiceAssembler
from ovchat_server.chat.prompt import Conversation
from ovchat_server.chat.reasoning import CLOSE, OPEN
from ovchat_server.engine.grammar import Reasoning
from ovchat_server.serving.answer import Answer, assembly_options, completion_info
from ovchat_server.serving.generation import PromptTokens, generation_requests, truncated
from ovchat_server.serving.structured_output import checked_grammar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.api.chat import ChatRequest
    from ovchat_server.chat.assembler import AssemblyOptions
    from ovchat_server.chat.prompt import Prompt
    from ovchat_server.serving.models import ModelRegistry, ServedModel


class ChatCompletions:
    """Answers chat requests."""

    def __init__(self, models: ModelRegistry) -> None:
        """Answer with `models`."""
        self._models = models

    async def answer(self, request: ChatRequest) -> Answer:
        """The answer to a request, not begun yet.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """
        model = self._models.get(request.model)
        params = request.generation
        # A long conversation takes a while to render and tokenise; others go on meanwhile.
        prompt = await asyncio.to_thread(
            # What is cut anyway may be longer.
            render_prompt,
            model,
            request,
            None if params.truncation else model.files.context_length,
        )
        tokens = truncated(model, params, prompt.tokens)
        reasoning = _reasoning(model, request, prompt)
        grammar = await checked_grammar(model, params.constraint, reasoning)
        requests = generation_requests(model, params, [PromptTokens("messages", tokens)], grammar)
        options = _assembly(model, request, prompt)
        return Answer(
            model,
            completion_info(model, "chatcmpl"),
            requests,
            len(tokens),
            [ChoiceAssembler(index, model.files.tokenizer, options) for index in range(params.n)],
            tuple(_opening(request)),
        )


def render_prompt(
    model: ServedModel, request: ChatRequest, most_tokens: int | None = None
) -> Prompt:
    """The prompt that a request makes.

    Args:
        model: Whose template and tokenizer to use.
        request: What of it shapes the prompt is used.
        most_tokens: A text that surely has more is not tokenised.

    Raises:
        InvalidRequestError: See PromptRenderer.render.
    """
    conversation = Conversation(
        request.messages,
        request.tools if request.tool_mode is ToolMode.AUTO else (),
        request.template_arguments,
        request.documents,
        request.prompt_ending,
    )
    return model.renderer.render(conversation, most_tokens)


def _assembly(model: ServedModel, request: ChatRequest, prompt: Prompt) -> AssemblyOptions:
    template = model.files.template
    constrained = request.generation.constraint is not None
    reasoning = _reasoning(model, request, prompt) is not None
    return dataclasses.replace(
        assembly_options(model, request.generation),
        reasoning=reasoning if constrained else template.thinks,
        reasoning_opened=_inside_reasoning(request, prompt),
        tool_calls=request.tool_mode is ToolMode.AUTO and template.calls_tools,
    )


def _reasoning(model: ServedModel, request: ChatRequest, prompt: Prompt) -> Reasoning | None:
    """How the model reasons in this answer; None where it does not."""
    opened = _inside_reasoning(request, prompt)
    continues = request.prompt_ending is PromptEnding.FINAL_MESSAGE
    closed = continues or prompt.text.rstrip().endswith(CLOSE)
    if not model.files.template.thinks or (closed and not opened):
        return None
    return Reasoning(OPEN, CLOSE, opened)


def _inside_reasoning(request: ChatRequest, prompt: Prompt) -> bool:
    if request.prompt_ending is PromptEnding.FINAL_MESSAGE:
        content = request.messages[-1].content or ""
        return content.rfind("<think>") > content.rfind("</think>")
    return prompt.text.rstrip().endswith("<think>")


def _opening(request: ChatRequest) -> Iterator[ChunkChoice]:
    """The role of every choice, and what it goes on with where that was asked for."""
    last = request.messages[-1]
    # As vLLM: where the answer is another's turn, it has no beginning to echo.
    continues = request.prompt_ending is not PromptEnding.ASSISTANT_TURN
    echo = request.echo and (continues or last.role is Role.ASSISTANT)
    for index in range(request.generation.n):
        yield ChunkChoice(index, Delta(role=Role.ASSISTANT))
        if echo and last.content:
            yield ChunkChoice(index, Delta(content=last.content))
