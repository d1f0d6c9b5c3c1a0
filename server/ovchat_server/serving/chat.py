"""What chats have of their own at each stage of a completion."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from ovchat_server.chat.dialects.base import ParserOptions
from ovchat_server.domain.chat import PromptEnding, Role, ToolMode
from ovchat_server.domain.completion import ChunkChoice, Delta
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.limits import check_thinking_budget
from ovchat_server.serving.plan import assembly_options
from ovchat_server.serving.reasoning import reasoning_before, reasoning_budget
from ovchat_server.serving.render import render_chat

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.chat.assembler import AssemblyOptions
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.serving.answer_format import AnswerFormat, AnswerFormats
    from ovchat_server.serving.images import ImagePreparation
    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.render import RenderedPrompt
    from ovchat_server.serving.worker_pool import WorkerPool
    from ovchat_server.tokenizer.huggingface import Tokenizer

# The control tokens that are markup of the dialect, and the other control tokens. Parsers must see
# the first, which callers must not see; the others are dropped.
ControlMarkup: TypeAlias = tuple[tuple[str, ...], frozenset[int]]


class ChatStages:
    """Chats: a conversation is the prompt; answers may hold reasoning and calls."""

    repeats_prompts = False

    def __init__(self, formats: AnswerFormats, images: ImagePreparation) -> None:
        """Answer in `formats`, encode `images`, and know nothing of any model yet."""
        self._formats = formats
        self._images = images
        # By tokenizer: it is the same for all requests to a model.
        self._control_markup: WeakKeyDictionary[Tokenizer, ControlMarkup] = WeakKeyDictionary()

    async def render(
        self, model: TextModel, request: ChatRequest, workers: WorkerPool
    ) -> list[RenderedPrompt]:
        """Encode the images and render the conversation; see render_chat."""
        caller = current_caller(request.generation.priority)
        images = await self._images.encode(model, request.messages, caller)
        return [await workers.run(partial(render_chat, model, request, images))]

    async def constrain(
        self,
        model: TextModel,
        request: ChatRequest,
        prompts: Sequence[RenderedPrompt],
        max_tokens: Sequence[int],
    ) -> AnswerFormat:
        """Compile the grammar of the response format and of the tools' calls."""
        [prompt], [most] = prompts, max_tokens
        check_thinking_budget(model, request)
        reasoning = reasoning_before(model, request, prompt.text, opened=prompt.inside_reasoning)
        answer_format = await self._formats.of_chat(model, request, reasoning)
        budget = reasoning_budget(model, request, prompt, answer_format, most)
        return dataclasses.replace(answer_format, budget=budget)

    def assembly(
        self,
        model: TextModel,
        request: ChatRequest,
        prompts: Sequence[RenderedPrompt],
        answer_format: AnswerFormat,
    ) -> list[AssemblyOptions]:
        """Return how to find reasoning and calls in the choices; the same for all of them."""
        [prompt] = prompts
        options = assembly_options(
            model, request.generation, constrained=answer_format.constrains_whole_answer
        )
        hidden, dropped = ((), frozenset()) if options.special_tokens else self._markup(model)
        choice = request.tool_choice
        offered = request.tools and choice.mode is not ToolMode.NONE
        # An answer that must begin with its format is not parsed for reasoning.
        dialects = model.dialects
        if answer_format.excludes_reasoning:
            dialects = dataclasses.replace(dialects, reasoning=None)
        options = dataclasses.replace(
            options,
            special_tokens=options.special_tokens or bool(hidden),
            dropped_tokens=dropped,
            parser=partial(
                dialects.parser,
                ParserOptions(
                    request.tools,
                    calls_enforced=answer_format.calls_enforced,
                    calls_only_first=answer_format.calls_only_first,
                )
                if offered
                else None,
                opened=prompt.inside_reasoning,
                hidden=hidden,
            ),
            marks_reasoning=dialects.reasoning is not None,
            include_reasoning=request.include_reasoning,
            single_call=not (choice.parallel or answer_format.calls_enforced),
            call_tags=request.call_tags,
        )
        return [options] * request.generation.n

    def first_chunks(
        self,
        request: ChatRequest,
        prompts: Sequence[RenderedPrompt],  # noqa: ARG002
    ) -> Iterator[ChunkChoice]:
        """Yield the role of each choice, and the message that it continues where asked for."""
        last = request.messages[-1]
        # As in vLLM, an answer that is a turn of its own has no beginning to echo.
        continues = request.prompt_ending is not PromptEnding.ASSISTANT_TURN
        echo = request.echo and (continues or last.role is Role.ASSISTANT)
        logprobs = () if request.generation.logprobs else None
        for index in range(request.generation.n):
            yield ChunkChoice(index, Delta(role=Role.ASSISTANT), logprobs=logprobs)
            if echo and last.text:
                yield ChunkChoice(index, Delta(content=last.text))

    def _markup(self, model: TextModel) -> ControlMarkup:
        tokenizer = model.files.tokenizer
        if (markup := self._control_markup.get(tokenizer)) is None:
            markup = _control_markup(tokenizer, model.dialects.special_tokens)
            self._control_markup[tokenizer] = markup
        return markup


def _control_markup(tokenizer: Tokenizer, markup: tuple[str, ...]) -> ControlMarkup:
    control = tokenizer.control_tokens
    hidden = tuple(tag for tag in markup if tag in control)
    if not hidden:
        return (), frozenset()
    tokens = (tokenizer.token(text) for text in control.difference(hidden))
    return hidden, frozenset(token for token in tokens if token is not None)
