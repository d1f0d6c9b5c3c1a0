"""One chat request, from validated to answered."""

from __future__ import annotations

import dataclasses
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from ovchat_server.api.chat import PromptEnding, Role, ToolMode
from ovchat_server.api.completion import ChunkChoice, Delta
from ovchat_server.api.field_path import FieldPath
from ovchat_server.api.limits import DEFAULT_LIMITS
from ovchat_server.chat.assembler import ChoiceAssembler
from ovchat_server.chat.dialects.base import ParserOptions
from ovchat_server.chat.prompt import Conversation
from ovchat_server.serving.answer import Answer, assembly_options, completion_info
from ovchat_server.serving.answer_form import answer_form, reasoning_before
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.api.chat import ChatRequest
    from ovchat_server.api.limits import Limits
    from ovchat_server.chat.assembler import AssemblyOptions
    from ovchat_server.chat.dialects.registry import Dialects
    from ovchat_server.chat.prompt import Prompt
    from ovchat_server.serving.answer_form import AnswerForm
    from ovchat_server.serving.models import ModelRegistry
    from ovchat_server.serving.worker_pool import WorkerPool
    from ovchat_server.tokenizer.huggingface import Tokenizer

# Which of a dialect's markup are control tokens, and the other control tokens. Parsers have to see
# the first, which callers are not to see; nobody sees the others.
ControlMarkup: TypeAlias = tuple[tuple[str, ...], frozenset[int]]


class ChatCompletions:
    """Answers chat requests."""

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
        # The same for all requests to a model.
        self._control_markup = cache(_control_markup)
        self._limits = limits

    async def answer(self, request: ChatRequest) -> Answer:
        """The answer to a request, not begun yet.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """
        deadline = Deadline(self._request_timeout)
        async with deadline.limit():
            return await self._answer(request, deadline)

    async def _answer(self, request: ChatRequest, deadline: Deadline) -> Answer:
        model = self._models.get_as(ServedModel, request.model)
        model.engine.check_queue(current_caller(request.generation.priority))
        params = request.generation
        # What is cut anyway may be longer.
        most = None if params.truncation else model.files.context_length
        prompt = await self._workers.run(partial(render_prompt, model, request, most))
        tokens = truncated(model, params, prompt.tokens)
        opened = _inside_reasoning(model.dialects, request, prompt)
        reasoning = reasoning_before(model, request, prompt.text, opened=opened)
        prompts = [PromptTokens(FieldPath.of("messages"), tokens)]
        # Before a grammar is compiled for what does not fit anyway.
        check_prompts(model, params, prompts)
        check_prompt_logprobs(params, prompts, self._limits.max_prompt_logprobs)
        form = await answer_form(model, request, reasoning, self._workers)
        banned = await banned_tokens(model, params, self._workers)
        requests = generation_requests(model, params, prompts, form.grammar, banned)
        markup = self._control_markup(model.files.tokenizer, model.dialects.special_tokens)
        options = _assembly(model, request, form, markup, opened=opened)
        return Answer(
            model,
            completion_info(model, "chatcmpl"),
            requests,
            len(tokens),
            [ChoiceAssembler(index, model.files.tokenizer, options) for index in range(params.n)],
            opening_of(
                model,
                self._workers,
                params,
                tuple(_beginnings(request)),
                prompts,
                answered=params.n,
            ),
            request.call_tags,
            params.priority,
            deadline,
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
        () if request.tool_choice.mode is ToolMode.NONE else request.tools,
        request.template_arguments,
        request.documents,
        request.prompt_ending,
    )
    return model.renderer.render(conversation, most_tokens)


def _assembly(
    model: ServedModel,
    request: ChatRequest,
    form: AnswerForm,
    markup: ControlMarkup,
    *,
    opened: bool,
) -> AssemblyOptions:
    options = assembly_options(model, request.generation, bound=form.bound)
    dialects = model.dialects
    hidden, dropped = ((), frozenset()) if options.special_tokens else markup
    choice = request.tool_choice
    offered = request.tools and choice.mode is not ToolMode.NONE
    # What a form lets begin with the answer is not looked through for reasoning.
    unreasoned = form.bound and not form.reasoned
    spoken = dataclasses.replace(dialects, reasoning=None) if unreasoned else dialects
    return dataclasses.replace(
        options,
        special_tokens=options.special_tokens or bool(hidden),
        dropped_tokens=dropped,
        parser=partial(
            spoken.parser,
            ParserOptions(request.tools, trusted=form.trusted, leading=form.leading)
            if offered
            else None,
            opened=opened,
            hidden=hidden,
        ),
        reasons=spoken.reasoning is not None,
        include_reasoning=request.include_reasoning,
        single_call=not (choice.parallel or form.trusted),
    )


def _control_markup(tokenizer: Tokenizer, markup: tuple[str, ...]) -> ControlMarkup:
    control = tokenizer.control_tokens
    hidden = tuple(tag for tag in markup if tag in control)
    if not hidden:
        return (), frozenset()
    tokens = (tokenizer.token(text) for text in control.difference(hidden))
    return hidden, frozenset(token for token in tokens if token is not None)


def _inside_reasoning(dialects: Dialects, request: ChatRequest, prompt: Prompt) -> bool:
    if request.prompt_ending is PromptEnding.FINAL_MESSAGE:
        return dialects.left_open(request.messages[-1].content or "")
    return dialects.opened_by(prompt.text)


def _beginnings(request: ChatRequest) -> Iterator[ChunkChoice]:
    """The role of every choice, and what it goes on with where that was asked for."""
    last = request.messages[-1]
    # As vLLM: where the answer is another's turn, it has no beginning to echo.
    continues = request.prompt_ending is not PromptEnding.ASSISTANT_TURN
    echo = request.echo and (continues or last.role is Role.ASSISTANT)
    for index in range(request.generation.n):
        yield ChunkChoice(index, Delta(role=Role.ASSISTANT))
        if echo and last.content:
            yield ChunkChoice(index, Delta(content=last.content))
