"""One chat request, from validated to answered."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import time
import uuid
from typing import TYPE_CHECKING, TypeVar

from ovchat_server.api.chat import Role, ToolMode
from ovchat_server.api.completion import (
    ChatChunk,
    ChatCompletion,
    ChunkChoice,
    CompletionInfo,
    Delta,
    FinishReason,
    Usage,
)
from ovchat_server.api.errors import ContextLengthExceededError, InvalidRequestError, Violation
from ovchat_server.chat.assembler import AssemblyOptions, ChoiceAssembler
from ovchat_server.chat.collector import ChoiceCollector
from ovchat_server.engine.base import GenerationRequest, Sampling

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ovchat_server.api.chat import ChatRequest, SamplingParams
    from ovchat_server.chat.prompt import Prompt
    from ovchat_server.serving.model_files import SamplingDefaults
    from ovchat_server.serving.models import ModelRegistry, ServedModel

T = TypeVar("T")

# vLLM's border: below it the engine's own sampling turns into random tokens.
GREEDY_BELOW = 1e-5
# OVMS's default: a top_p over a whole vocabulary costs 100 ms a step.
DEFAULT_TOP_K = 40


class ChatCompletions:
    """Answers chat requests, whole or as they are generated."""

    def __init__(self, models: ModelRegistry) -> None:
        """Answer with `models`."""
        self._models = models

    async def create(self, request: ChatRequest) -> ChatCompletion:
        """The whole answer.

        Raises:
            ApiError: There is none; see the subclasses.
        """
        collector = ChoiceCollector()
        async with contextlib.aclosing(self._generate(request)) as chunks:
            async for chunk in chunks:
                for choice in chunk.choices:
                    collector.add(choice)
                info, usage = chunk.info, chunk.usage
        if usage is None:
            raise AssertionError("the last chunk carries the usage")
        return ChatCompletion(info, (collector.choice(),), usage)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        """The answer as it is generated. Closing the generator frees the engine.

        Raises:
            ApiError: As `create`; most before the first chunk, a dying engine after it.
        """
        async with contextlib.aclosing(self._generate(request)) as chunks:
            async for chunk in chunks:
                if chunk.choices or request.include_usage:
                    yield chunk

    async def _generate(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        """All chunks of one answer; the last one has no choices, and the usage."""
        model = self._models.get(request.model)
        # A long conversation takes a while to render and tokenise; others go on meanwhile.
        prompt = await asyncio.to_thread(render_prompt, model, request, model.files.context_length)
        info = CompletionInfo(
            id=f"chatcmpl-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=request.model,
            system_fingerprint=model.fingerprint,
        )
        assembler = ChoiceAssembler(model.files.tokenizer, _assembly(model, request, prompt))
        choices = self._choice(model, request, prompt, assembler)
        async with contextlib.aclosing(choices):
            async for choice in choices:
                yield ChatChunk(info, (choice,))
        usage = Usage(
            prompt_tokens=len(prompt.tokens),
            completion_tokens=assembler.completion_tokens,
            reasoning_tokens=assembler.reasoning_tokens if assembler.reasons else None,
        )
        yield ChatChunk(info, (), usage)

    async def _choice(
        self, model: ServedModel, request: ChatRequest, prompt: Prompt, assembler: ChoiceAssembler
    ) -> AsyncGenerator[ChunkChoice, None]:
        """The chunks of one choice: its role, what it says, why it ended."""
        reason = FinishReason.STOP
        generation = _generation_request(model, request, prompt)
        async with contextlib.aclosing(model.engine.generate(generation)) as pieces:
            role: Role | None = Role.ASSISTANT
            async for piece in pieces:
                if role:
                    # As soon as there is a token: callers measure their TTFT by it.
                    yield ChunkChoice(0, Delta(role=role))
                    role = None
                if delta := assembler.feed(piece.tokens):
                    yield ChunkChoice(0, delta)
                if assembler.stopped_by is not None:
                    break
                if piece.finish is not None:
                    reason = FinishReason(piece.finish)
        delta, reason = assembler.finish(reason)
        if delta:
            yield ChunkChoice(0, delta)
        yield ChunkChoice(0, Delta(), reason, assembler.stopped_by)


def render_prompt(
    model: ServedModel, request: ChatRequest, most_tokens: int = sys.maxsize
) -> Prompt:
    """What the model is given for a request.

    Raises:
        ContextLengthExceededError: It surely has more than `most_tokens`.
        InvalidRequestError: The template refuses the request.
    """
    return model.renderer.render(
        request.messages,
        request.tools if request.tool_mode is ToolMode.AUTO else (),
        request.template_arguments,
        most_tokens,
    )


def _assembly(model: ServedModel, request: ChatRequest, prompt: Prompt) -> AssemblyOptions:
    return AssemblyOptions(
        stop=request.stop,
        reasoning=model.files.template.thinks,
        reasoning_opened=prompt.text.rstrip().endswith("<think>"),
        tool_calls=request.tool_mode is ToolMode.AUTO and model.files.template.calls_tools,
    )


def _generation_request(
    model: ServedModel, request: ChatRequest, prompt: Prompt
) -> GenerationRequest:
    """What to ask the engine.

    Raises:
        ContextLengthExceededError: Prompt and answer do not fit. While the model loads, what
            its engine can hold is unknown; then `generate` says that it does not answer yet.
        InvalidRequestError: There is nothing to answer.
    """
    if not prompt.tokens:
        # The engine takes none, and ends all it runs when it is given one.
        complaint = "messages make an empty prompt in the model's chat template."
        raise InvalidRequestError.of([Violation("messages", complaint)])
    context = model.engine.status.context_length or model.files.context_length
    used = len(prompt.tokens)
    left = context - used
    if left < 1:
        raise ContextLengthExceededError.of_messages(used, context)
    if request.max_tokens is not None and request.max_tokens > left:
        raise ContextLengthExceededError.of_answer(request.max_tokens, used, context)
    return GenerationRequest(
        prompt=prompt.tokens,
        max_tokens=request.max_tokens or left,
        sampling=resolve_sampling(request.sampling, model.files.defaults),
    )


def resolve_sampling(request: SamplingParams, defaults: SamplingDefaults) -> Sampling:
    """How tokens are chosen: the request wins, then the model, then OpenAI's and OVMS's."""
    temperature = _first(request.temperature, defaults.temperature, 1.0)
    top_k = _first(request.top_k, defaults.top_k, DEFAULT_TOP_K)
    return Sampling(
        temperature=0.0 if temperature < GREEDY_BELOW else temperature,
        top_p=_first(request.top_p, defaults.top_p, 1.0),
        top_k=max(top_k, 0),
        # The engine's own default is 0, the same for everyone.
        seed=_first(request.seed, None, secrets.randbits(32)),
    )


def _first(request: T | None, default: T | None, last: T) -> T:
    if request is not None:
        return request
    return last if default is None else default
